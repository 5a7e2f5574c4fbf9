// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/communicator_impl.h"

#include <algorithm>

#include "nccl/core/group.h"
#include "nccl/core/texts.h"
#include "store/deadline.h"

namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

// Operations of a communicator that were started and have not ended; who begins more waits.
constexpr size_t kMaxFlights = 4096;
// Of these the watcher looks at so many at once: the oldest, which a device ends first, and as many
// of the others, in turn.
constexpr size_t kPollAtOnce = 64;

}  // namespace

CommunicatorImpl::CommunicatorImpl(Parts parts)
    : parts_(std::move(parts)),
      operation_timeout_(
          parts_.plan.options.operation_timeout.value_or(parts_.plan.options.timeout)),
      page_({.id = parts_.id,
             .name = parts_.plan.name,
             .rank = parts_.plan.rank,
             .size = parts_.plan.size,
             .world_ranks = parts_.plan.world_ranks,
             .backend = parts_.kind}),
      checker_(parts_.check_collectives == nullptr
                   ? nullptr
                   : std::make_shared<Checker>(plan(), parts_.check_collectives,
                                               parts_.check_messages,
                                               [this]() -> std::optional<Error> {
                                                 if (health_.open()) return std::nullopt;
                                                 return Error{ErrorCode::kAborted, ""};
                                               })) {}

std::optional<Error> CommunicatorImpl::refusal(const std::string& call) const {
  if (health_.open()) return std::nullopt;
  Error error = health_.why();
  error.message = call + " of communicator " + plan().name + ": " + error.message;
  return error;
}

Limit CommunicatorImpl::limit(const OpOptions& options) const {
  const Duration timeout = options.timeout.value_or(operation_timeout_);
  return {deadline_in(timeout), timeout};
}

std::optional<Error> CommunicatorImpl::check(Operation& operation, const OpOptions& options) const {
  std::optional<Error> problem = check_operation(operation, caller());
  if (!problem && options.timeout)
    problem = check_timeout(std::string(to_string(operation.kind)) + ": options.timeout",
                            *options.timeout);
  if (problem) return problem;
  drop_unused(operation, plan().rank);
  return std::nullopt;
}

Work CommunicatorImpl::call(Operation operation, const OpOptions& options) {
  if (std::optional<Error> problem = check(operation, options)) return refuse(*std::move(problem));
  if (OpenGroup* group = OpenGroup::current())
    return group->collect(shared_from_this(), std::move(operation));
  const bool here = !parts_.backend->stream_ordered() && !options.async && background_.idle();
  if (!here) {
    std::vector<Operation> one;
    one.push_back(std::move(operation));
    return submit(std::move(one), options);
  }
  if (!health_.open()) return *refusal(to_string(operation.kind));
  PageBlock::Slot slot = page_.begin(operation);
  return run_here({&operation, 1}, {&slot, 1}, limit(options));
}

Work CommunicatorImpl::call_together(std::vector<Operation> operations, const OpOptions& options) {
  for (Operation& operation : operations)
    if (std::optional<Error> problem = check(operation, options))
      return refuse(*std::move(problem));
  OpenGroup* group = OpenGroup::current();
  if (group == nullptr) return submit(std::move(operations), options);
  Work work;
  for (Operation& operation : operations)
    work = group->collect(shared_from_this(), std::move(operation));
  return work;
}

Work CommunicatorImpl::refuse(Error error) const {
  error.message = "communicator " + plan().name + ": " + error.message;
  if (OpenGroup* group = OpenGroup::current()) group->spoil(error);
  return error;
}

Work CommunicatorImpl::submit(std::vector<Operation> operations, const OpOptions& options) {
  if (operations.empty()) return {};
  if (!health_.open()) return *refusal(to_string(operations.front().kind));
  const bool messages = std::all_of(operations.begin(), operations.end(),
                                    [](const Operation& each) { return each.point_to_point(); });
  const bool busy = !background_.idle();
  if (parts_.backend->stream_ordered()) return start(std::move(operations), limit(options));
  if (messages && (options.async || busy || checker_ != nullptr)) {
    // Messages do not wait for collectives that wait in the background.
    Work work = start(std::move(operations), limit(options));
    if (options.async) return work;
    if (Result<void> result = work.wait(); !result) return result.error();
    return {};
  }
  if (options.async || busy) return run_in_background(std::move(operations), options);
  std::vector<PageBlock::Slot> slots = enter(operations);
  return run_here(operations, slots, limit(options));
}

Work CommunicatorImpl::run_here(std::span<const Operation> operations,
                                std::span<PageBlock::Slot> slots, const Limit& limit) {
  Result<void> result = run(operations, slots, limit.deadline);
  result = leave(operations, slots, limit, std::move(result));
  if (!result) return std::move(result).error();
  return {};
}

Work CommunicatorImpl::run_in_background(std::vector<Operation> operations,
                                         const OpOptions& options) {
  std::vector<PageBlock::Slot> slots = enter(operations);
  auto flight = std::make_shared<Flight>(shared_from_this(), std::move(operations),
                                         std::move(slots), limit(options));
  begin_use();
  if (!background_.push(flight))
    complete(*flight, Error{health_.open() ? ErrorCode::kTimeout : ErrorCode::kAborted,
                            "too many operations are waiting before it"});
  if (options.async) return Work(std::move(flight));
  if (Result<void> result = flight->wait(); !result) return result.error();
  return {};
}

Work CommunicatorImpl::start(std::vector<Operation> operations, const Limit& limit) {
  const bool room = wait_for_room(limit.deadline);
  std::vector<PageBlock::Slot> slots = enter(operations);
  auto flight =
      std::make_shared<Flight>(shared_from_this(), std::move(operations), std::move(slots), limit);
  const bool open = begin_use();
  if (!room || !open) {
    complete(*flight, Error{open ? ErrorCode::kTimeout : ErrorCode::kAborted,
                            "too many operations have been started before it"});
    return Work(std::move(flight));
  }
  Result<std::shared_ptr<Pending>> pending = begin(*flight);
  if (!pending) {
    complete(*flight, pending.error());
    return Work(std::move(flight));
  }
  flight->set_pending(std::move(*pending));
  bool watch = false;
  {
    const std::lock_guard lock(mutex_);
    if (watcher_ == nullptr) watcher_ = Watcher::shared();
    flights_.push_back(flight);
    watch = !std::exchange(watched_, true);
  }
  if (watch) watcher_->watch(shared_from_this());
  return Work(std::move(flight));
}

Result<void> CommunicatorImpl::run(std::span<const Operation> operations,
                                   std::span<const PageBlock::Slot> slots, Deadline deadline) {
  Result<void> result = Error{ErrorCode::kAborted, ""};
  if (begin_use()) {
    result = compare(operations, slots, deadline);
    if (result) result = parts_.backend->run(operations, deadline);
  }
  end_use();
  return result;
}

Result<void> CommunicatorImpl::compare(std::span<const Operation> operations,
                                       std::span<const PageBlock::Slot> slots, Deadline deadline) {
  if (checker_ == nullptr) return {};
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].point_to_point()) continue;
    Result<void> same = checker_->compare(operations[i], slots[i].sequence, deadline);
    if (!same) return same;
  }
  Checker::Messages messages(*checker_, operations);
  Result<void> same = messages.wait(deadline);
  messages.begun();
  return same;
}

Result<std::shared_ptr<Pending>> CommunicatorImpl::begin(const Flight& flight) {
  const std::span<const Operation> operations = flight.operations();
  const Deadline deadline = flight.limit().deadline;
  if (checker_ != nullptr && !parts_.backend->stream_ordered())
    return std::shared_ptr<Pending>(std::make_shared<CheckedPending>(
        checker_, *parts_.backend, std::vector<Operation>(operations.begin(), operations.end()),
        deadline));
  // A stream's order is that of the calls, so that they have to wait for the comparison.
  if (Result<void> same = compare(operations, flight.slots(), deadline); !same)
    return std::move(same).error();
  return parts_.backend->start(operations, deadline);
}

void CommunicatorImpl::perform(Flight& flight) {
  flight.set_running();
  Result<void> result;
  if (Clock::now() < flight.limit().deadline)
    result = run(flight.operations(), flight.slots(), flight.limit().deadline);
  else
    result = Error{ErrorCode::kTimeout, "those before it took all the time"};
  background_.done();
  complete(flight, std::move(result));
}

void CommunicatorImpl::complete(Flight& flight, Result<void> result) {
  if (!flight.claim()) return;
  const std::shared_ptr<CommunicatorImpl> self = shared_from_this();  // the flight lets go of it
  result = leave(flight.operations(), flight.slots(), flight.limit(), std::move(result));
  flight.settle(std::move(result));
  end_use();
}

bool CommunicatorImpl::poll_flights() {
  std::vector<std::shared_ptr<Flight>> some;
  {
    const std::lock_guard lock(mutex_);
    const size_t oldest = std::min(flights_.size(), kPollAtOnce);
    some.assign(flights_.begin(), flights_.begin() + static_cast<ptrdiff_t>(oldest));
    const size_t others = flights_.size() - oldest;
    for (size_t i = 0; i < std::min(others, kPollAtOnce); ++i)
      some.push_back(flights_[oldest + next_look_++ % others]);
  }
  for (const std::shared_ptr<Flight>& flight : some)
    flight->poll();
  const std::lock_guard lock(mutex_);
  const size_t before = flights_.size();
  std::erase_if(flights_, [](const std::shared_ptr<Flight>& each) { return each->ended(); });
  if (flights_.size() < before) changed_.notify_all();
  watched_ = !flights_.empty();
  return watched_;
}

std::vector<PageBlock::Slot> CommunicatorImpl::enter(std::span<const Operation> operations) {
  std::vector<PageBlock::Slot> slots;
  slots.reserve(operations.size());
  for (const Operation& operation : operations)
    slots.push_back(page_.begin(operation));
  return slots;
}

bool CommunicatorImpl::begin_use() {
  users_.fetch_add(1);
  return health_.open();
}

// The fast path takes no lock: whoever waits for users has ended the health before.
void CommunicatorImpl::end_use() {
  if (users_.fetch_sub(1) != 1) return;
  if (health_.open() && !closing_.load()) return;
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool CommunicatorImpl::wait_unused(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return users_.load() == 0; });
}

bool CommunicatorImpl::wait_for_room(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline,
                             [this] { return flights_.size() < kMaxFlights || !health_.open(); });
}

}  // namespace muster::comm::detail
