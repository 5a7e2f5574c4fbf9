// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/group.h"

#include <algorithm>

#include "nccl/core/communicator_impl.h"
#include "nccl/join/roll_call.h"
#include "store/deadline.h"

namespace muster::comm {
namespace detail {
namespace {

// Operations that one group may collect of each communicator.
constexpr size_t kMaxCollected = 65536;

std::unique_ptr<OpenGroup>& open_group() {
  static thread_local std::unique_ptr<OpenGroup> group;
  return group;
}

}  // namespace

void GroupWork::begin(std::vector<Work> parts) {
  const std::lock_guard lock(mutex_);
  parts_ = std::move(parts);
  error_.reset();
  open_ = false;
}

void GroupWork::fail(Error error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  open_ = false;
}

std::optional<Error> GroupWork::problem() {
  const std::lock_guard lock(mutex_);
  return error_;
}

// The first error is told when all have ended: the memory of all is free then.
Result<void> GroupWork::wait() {
  if (std::optional<Error> error = problem()) return *error;
  Result<void> first;
  for (Work& part : parts_)
    if (Result<void> result = part.wait(); !result && first) first = std::move(result);
  return first;
}

Result<void> GroupWork::wait(Duration limit) {
  if (std::optional<Error> error = problem()) return *error;
  const Deadline deadline = deadline_in(limit);
  Result<void> first;
  for (Work& part : parts_)
    if (Result<void> result = part.wait(time_left(deadline)); !result && first)
      first = std::move(result);
  return first;
}

bool GroupWork::test() {
  {
    const std::lock_guard lock(mutex_);
    if (open_) return false;
  }
  return std::all_of(parts_.begin(), parts_.end(), [](Work& part) { return part.test(); });
}

OpenGroup* OpenGroup::current() {
  return open_group().get();
}

bool OpenGroup::open(const GroupGuard* owner) {
  if (open_group() != nullptr) return false;
  open_group() = std::make_unique<OpenGroup>();
  open_group()->owner_ = owner;
  return true;
}

std::unique_ptr<OpenGroup> OpenGroup::take(const GroupGuard* owner) {
  if (open_group() == nullptr || open_group()->owner_ != owner) return nullptr;
  return std::move(open_group());
}

Work OpenGroup::collect(std::shared_ptr<CommunicatorImpl> communicator, Operation operation) {
  auto part = std::find_if(parts_.begin(), parts_.end(),
                           [&](const Part& each) { return each.communicator == communicator; });
  if (part == parts_.end()) part = parts_.insert(part, Part{std::move(communicator), {}});
  if (part->operations.size() == kMaxCollected) {
    spoil(invalid("a group of more than " + std::to_string(kMaxCollected) +
                  " operations of one communicator"));
    return *wrong_;
  }
  part->operations.push_back(std::move(operation));
  return Work(work_);
}

void OpenGroup::spoil(const Error& error) {
  if (!wrong_) wrong_ = error;
}

Work OpenGroup::end(const OpOptions& options) {
  if (wrong_) {
    wrong_->message = "group: nothing of it was begun: " + wrong_->message;
    work_->fail(*wrong_);
    return Work(work_);
  }
  // Several communicators at the same time, whatever their order on other ranks.
  OpOptions each = options;
  each.async = options.async || parts_.size() > 1;
  std::vector<Work> works;
  for (Part& part : parts_)
    works.push_back(part.communicator->submit(std::move(part.operations), each));
  const bool wait = !options.async && std::any_of(parts_.begin(), parts_.end(), [](Part& part) {
    return !part.communicator->backend().stream_ordered();
  });
  work_->begin(std::move(works));
  if (wait && parts_.size() > 1)
    if (Result<void> result = work_->wait(); !result) return result.error();
  return Work(work_);
}

void OpenGroup::forget() {
  work_->fail(Error{ErrorCode::kAborted, "group: dropped without end(): nothing of it was begun"});
}

}  // namespace detail

GroupGuard::GroupGuard() {
  detail::OpenGroup::open(this);
}

GroupGuard::~GroupGuard() {
  if (const std::unique_ptr<detail::OpenGroup> group = detail::OpenGroup::take(this))
    group->forget();
}

Work GroupGuard::end(OpOptions options) {
  const std::unique_ptr<detail::OpenGroup> group = detail::OpenGroup::take(this);
  if (group == nullptr)
    return detail::invalid(
        "group: end: it has ended already, or it was opened within another one; groups do not "
        "nest");
  return group->end(options);
}

}  // namespace muster::comm
