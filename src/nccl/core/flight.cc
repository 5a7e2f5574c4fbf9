// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/flight.h"

#include <algorithm>
#include <thread>

#include "nccl/core/communicator_impl.h"
#include "nccl/core/texts.h"
#include "store/deadline.h"

namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

// What is being run ends at its deadline by itself and knows best what was missing; only a backend
// that does not come back is overruled.
constexpr std::chrono::milliseconds kGrace{500};
// Between two looks at a device: for a short operation at once, for a long one seldom.
constexpr std::chrono::microseconds kSpin{20};
constexpr std::chrono::microseconds kShortestPause{10};
constexpr std::chrono::microseconds kLongestPause{500};

}  // namespace

std::optional<Result<void>> Pending::wait(Deadline deadline) {
  const Clock::time_point begin = Clock::now();
  std::chrono::microseconds pause = kShortestPause;
  for (;;) {
    if (std::optional<Result<void>> result = poll()) return result;
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return std::nullopt;
    if (now - begin < kSpin) continue;
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - now);
    std::this_thread::sleep_for(std::min(pause, left + kShortestPause));
    pause = std::min(pause * 2, kLongestPause);
  }
}

Flight::Flight(std::shared_ptr<CommunicatorImpl> owner, std::vector<Operation> operations,
               std::vector<PageBlock::Slot> slots, Limit limit)
    : owner_(std::move(owner)),
      operations_(std::move(operations)),
      slots_(std::move(slots)),
      limit_(limit) {}

std::shared_ptr<CommunicatorImpl> Flight::owner() const {
  const std::lock_guard lock(mutex_);
  return owner_;
}

std::optional<Result<void>> Flight::outcome() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

void Flight::settle(Result<void> result) {
  std::shared_ptr<CommunicatorImpl> owner;  // may end here, outside of the lock
  {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    owner.swap(owner_);
    ended_.store(true);
  }
  changed_.notify_all();
}

void Flight::expire() {
  if (const std::shared_ptr<CommunicatorImpl> owner = this->owner()) owner->complete(*this, late());
}

Error Flight::late() {
  if (pending_ == nullptr) return Error{ErrorCode::kTimeout, ""};
  const std::unique_lock lock(pending_mutex_, std::try_to_lock);
  return lock ? pending_->late() : Error{ErrorCode::kTimeout, ""};
}

std::optional<Result<void>> Flight::await_pending(Deadline until) {
  std::unique_lock lock(pending_mutex_);
  if (std::optional<Result<void>> result = outcome()) return result;
  const std::shared_ptr<CommunicatorImpl> owner = this->owner();
  std::optional<Result<void>> result = pending_->wait(until);
  lock.unlock();
  if (result && owner != nullptr) owner->complete(*this, std::move(*result));
  return outcome();
}

std::optional<Result<void>> Flight::await(Deadline until) {
  if (pending_ != nullptr)
    if (std::optional<Result<void>> result = await_pending(until)) return result;
  // Also for what another thread is just completing.
  std::unique_lock lock(mutex_);
  const Deadline end = claimed_.load() ? until + kGrace : until;
  changed_.wait_until(lock, end, [this] { return result_.has_value(); });
  return result_;
}

Result<void> Flight::wait() {
  std::optional<Result<void>> result = await(limit_.deadline);
  if (!result && running_.load() && pending_ == nullptr) result = await(limit_.deadline + kGrace);
  if (!result) {
    expire();
    result = await(Clock::now() + kGrace);
  }
  if (result) return *result;
  return Error{ErrorCode::kTimeout, "timeout after " + time_text(limit_.timeout)};
}

Result<void> Flight::wait(Duration limit) {
  const Deadline until = deadline_in(limit);
  if (until >= limit_.deadline) return wait();
  if (std::optional<Result<void>> result = await(until)) return *result;
  return Error{ErrorCode::kTimeout, "wait: not done after " + time_text(limit) +
                                        "; the operation goes on and can be waited for again"};
}

bool Flight::test() {
  if (ended()) return true;
  if (pending_ != nullptr) return poll();
  if (Clock::now() < limit_.deadline + (running_.load() ? kGrace : Duration(0))) return false;
  expire();
  return ended();
}

bool Flight::poll() {
  if (ended()) return true;
  const std::shared_ptr<CommunicatorImpl> owner = this->owner();
  if (owner == nullptr) return true;
  std::unique_lock lock(pending_mutex_, std::try_to_lock);
  if (!lock) return false;
  std::optional<Result<void>> result = pending_->poll();
  if (!result && Clock::now() >= limit_.deadline) result = pending_->late();
  lock.unlock();
  const bool late = result && !*result && result->error().code == ErrorCode::kTimeout;
  if (late && !owner->heard_others(*this)) return false;
  if (result) owner->complete(*this, std::move(*result));
  return ended();
}

}  // namespace muster::comm::detail
