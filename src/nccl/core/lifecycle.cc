// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/communicator_impl.h"
#include "nccl/core/texts.h"
#include "store/deadline.h"

// How a communicator ends. Three steps, so that several can be ended together: mark() lets nothing
// new begin, stop() sends back whoever is in the backend, free() gives back what there is. Only the
// last one waits, by a deadline.
namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

// What is left to do by those who come back after an error has stopped the backend.
constexpr std::chrono::seconds kAfterError{5};

}  // namespace

void CommunicatorImpl::mark(const std::string& reason) {
  health_.end(Error{ErrorCode::kAborted, reason.empty() ? "aborted" : "aborted: " + reason});
  notice_end();
}

void CommunicatorImpl::notice_end() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
  if (watcher_ != nullptr) watcher_->wake();
}

void CommunicatorImpl::stop() {
  parts_.backend->stop();
  background_.stop();
  notice_end();
}

Result<void> CommunicatorImpl::revoke() {
  health_.end(Error{ErrorCode::kAborted, "revoked"});
  Result<void> result = parts_.backend->revoke();
  notice_end();
  return result;
}

// One thread frees; the others wait for what comes of it.
Result<void> CommunicatorImpl::free(Deadline deadline) {
  if (std::optional<Result<void>> freed = begin_freeing(deadline)) return *std::move(freed);
  Result<void> result = free_all(deadline);
  end_freeing(result);
  return result;
}

std::optional<Result<void>> CommunicatorImpl::begin_freeing(Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [this] { return !freeing_; }))
    return Result<void>(Error{ErrorCode::kTimeout, "communicator " + plan().name +
                                                       ": another thread is still ending it"});
  if (freed_) return freed_;
  freeing_ = true;
  return std::nullopt;
}

void CommunicatorImpl::end_freeing(const Result<void>& result) {
  const std::lock_guard lock(mutex_);
  freed_ = result;
  freeing_ = false;
  changed_.notify_all();
}

Result<void> CommunicatorImpl::free_all(Deadline deadline) {
  background_.stop();
  // Those inside come back by themselves or when the backend frees what they wait for.
  const Deadline half = Clock::now() + (deadline - Clock::now()) / 2;
  wait_unused(half);
  Result<void> result = parts_.backend->abort(deadline);
  const bool unused = wait_unused(deadline);
  const bool joined = background_.join(deadline);
  page_.close();
  if (!result) {
    Error error = std::move(result).error();
    error.message = "abort of communicator " + plan().name + ": " + error.message;
    return error;
  }
  if (unused && joined) return {};
  return Error{ErrorCode::kTimeout,
               "abort of communicator " + plan().name +
                   ": an operation does not come back from the backend; its memory must stay"};
}

Result<void> CommunicatorImpl::close() {
  const Deadline deadline = deadline_in(plan().options.timeout);
  if (!health_.open()) {
    stop();
    return free(std::min(deadline, Clock::now() + kAfterError));
  }
  closing_.store(true);
  const bool unused = wait_unused(deadline);
  if (!unused || !health_.open()) {
    mark("it was not done when it had to be closed");
    stop();
    Result<void> freed = free(Clock::now() + kAfterError);
    if (!unused && freed)
      return Error{ErrorCode::kTimeout, "close of communicator " + plan().name +
                                            ": timeout after " + time_text(plan().options.timeout) +
                                            "; it was aborted"};
    return freed;
  }
  health_.end(Error{ErrorCode::kAborted, "it is closed"});
  if (std::optional<Result<void>> freed = begin_freeing(deadline)) return *std::move(freed);
  background_.stop();
  background_.join(deadline);
  Result<void> result = parts_.backend->close(deadline);
  page_.close();
  end_freeing({});  // whatever came of it, there is no second time
  if (result) return {};
  Error error = std::move(result).error();
  error.message = "close of communicator " + plan().name + ": " + error.message;
  return error;
}

bool CommunicatorImpl::finished() {
  const std::lock_guard lock(mutex_);
  return freed_.has_value();
}

Result<void> CommunicatorImpl::status() {
  if (!health_.open()) {
    Error error = health_.why();
    error.message = "communicator " + plan().name + ": " + error.message;
    return error;
  }
  Result<void> result = parts_.backend->status();
  if (result) return {};
  return explain("status of communicator " + plan().name, {.timeout = plan().options.timeout},
                 std::move(result).error());
}

}  // namespace muster::comm::detail
