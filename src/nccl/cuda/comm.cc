// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/comm.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "nccl/cuda/device.h"
#include "nccl/cuda/trouble.h"

namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

// How long an abort waits for a call that is being made, all of which are short unless they are
// stuck: then the abort is what ends them.
constexpr std::chrono::milliseconds kTurnWait{200};

// Why a turn does not come.
constexpr const char* kBusy = "another call on this communicator has not come back";

}  // namespace

Result<ncclResult_t> NcclComm::in_turn(const char* what, Deadline deadline, const Body& body) {
  const std::unique_lock turn(turn_, deadline);
  if (!turn.owns_lock()) return late_error(what, kBusy);
  ncclComm_t comm = comm_;
  return comm == nullptr ? ncclInvalidUsage : body(comm);
}

bool NcclComm::call_soon(const Body& body) {
  const std::unique_lock turn(turn_, kTurnWait);
  ncclComm_t comm = comm_;
  if (!turn.owns_lock() || comm == nullptr) return false;
  (void)body(comm);
  return true;
}

Result<void> NcclComm::call(const char*& what, Deadline deadline, const Body& body) {
  bool refused = true;
  const Result<ncclResult_t> result = in_turn(what, deadline, [&](ncclComm_t comm) {
    refused = signal_->stopped();
    return refused ? ncclInvalidUsage : body(comm);
  });
  if (!result) return result.error();
  if (refused) return stopped_error(what);
  if (*result == ncclSuccess || *result == ncclInProgress) return {};
  return nccl_error(*result, what);
}

ncclComm_t NcclComm::take_made() {
  const std::lock_guard lock(made_mutex_);
  return std::exchange(made_, nullptr);
}

std::optional<ncclResult_t> NcclComm::state() {
  const std::unique_lock turn(turn_, std::try_to_lock);
  ncclComm_t comm = comm_;
  if (!turn.owns_lock() || comm == nullptr) return std::nullopt;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = nccl_.CommGetAsyncError(comm, &state);
  return asked != ncclSuccess ? asked : state;
}

Result<void> NcclComm::wait_ready(const std::string& what, Deadline deadline) {
  Result<void> ready = wait_ready(what, deadline, *signal_);
  if (ready) return ready;
  return in_use(std::move(ready).error());
}

Result<void> NcclComm::wait_ready(const std::string& what, Deadline deadline, StopSignal& stop) {
  for (Pause pause;; pause.wait(stop)) {
    if (stop.stopped() || !open()) return stopped_error(what);
    const std::optional<ncclResult_t> now = state();
    if (now == ncclSuccess) return {};
    if (now && *now != ncclInProgress) return failure(*now, what);
    if (Clock::now() >= deadline) return late_error(what);
  }
}

std::optional<Error> NcclComm::async_error(const std::string& what) {
  const std::optional<ncclResult_t> now = state();
  if (!now || *now == ncclSuccess || *now == ncclInProgress) return std::nullopt;
  return in_use(failure(*now, what));
}

// NCCL's words go with the first error that is told, and this one is asked for again and again.
Error NcclComm::failure(ncclResult_t result, const std::string& what) {
  const std::lock_guard lock(failure_mutex_);
  if (!failure_ || failure_->nccl_result != result) failure_ = nccl_error(result, what);
  return *failure_;
}

Error NcclComm::in_use(Error error) const {
  return in_use_ ? in_flight_error(std::move(error)) : error;
}

void NcclComm::stop() {
  signal_->stop();
  const std::lock_guard lock(children_mutex_);
  for (const auto& child : children_)
    child->signal_->stop();
}

// In a thread of its own.
ncclResult_t NcclComm::abort_now() {
  ncclComm_t comm = nullptr;
  {
    std::unique_lock turn(turn_, std::defer_lock);
    (void)turn.try_lock_for(kTurnWait);
    comm = comm_.exchange(nullptr);
  }
  const DeviceScope device(cuda_, device_);
  const ncclResult_t result = comm != nullptr ? nccl_.CommAbort(comm) : ncclSuccess;
  abort_children();
  // In progress would be news of what is no longer there to be asked.
  return result == ncclInProgress ? ncclSuccess : result;
}

void NcclComm::begin_abort() {
  stop();
  const std::lock_guard lock(aborted_mutex_);
  if (aborted_.valid() || !driver_usable()) return;
  std::promise<ncclResult_t> done;
  aborted_ = done.get_future().share();
  // ncclCommAbort waits for the device and may, with a broken driver or peer, never come back, and
  // nothing can end it then. So its thread is never joined, and owns what it touches.
  try {
    std::thread([self = shared_from_this(), done = std::move(done)]() mutable {
      const ncclResult_t result = self->abort_now();
      self.reset();
      done.set_value(result);
    }).detach();
  } catch (const std::system_error&) {
    aborted_ = {};  // no threads left; an abort() may have more luck
  }
}

Result<void> NcclComm::abort(Deadline deadline) {
  begin_abort();
  std::shared_future<ncclResult_t> aborted;
  {
    const std::lock_guard lock(aborted_mutex_);
    aborted = aborted_;
  }
  if (!driver_usable()) return {};
  if (!aborted.valid()) {
    return Error{.code = ErrorCode::kSystem, .message = "ncclCommAbort: no thread for it"};
  }
  if (aborted.wait_until(deadline) != std::future_status::ready) {
    return late_error("ncclCommAbort", "its memory stays taken; the process may go on");
  }
  if (aborted.get() != ncclSuccess) return nccl_error(aborted.get(), "ncclCommAbort");
  return {};
}

// Their making ended, badly or too late, when the parent was freed.
void NcclComm::abort_children() {
  std::vector<std::shared_ptr<NcclComm>> children;
  {
    const std::lock_guard lock(children_mutex_);
    children.swap(children_);
  }
  for (const auto& child : children) {
    if (ncclComm_t made = child->take_made()) nccl_.CommAbort(made);
  }
}

Result<void> NcclComm::destroy(Deadline deadline) {
  ncclComm_t comm = nullptr;
  {
    const std::unique_lock turn(turn_, deadline);
    if (!turn.owns_lock()) return late_error("ncclCommDestroy", kBusy);
    comm = comm_.exchange(nullptr);
  }
  if (comm == nullptr || !driver_usable()) return {};
  const auto result = std::make_shared<ncclResult_t>(ncclSuccess);
  const Ended ended = run_bounded(nullptr, deadline, [self = shared_from_this(), comm, result] {
    const DeviceScope device(self->cuda_, self->device_);
    *result = self->nccl_.CommDestroy(comm);
    self->abort_children();
  });
  if (ended != Ended::kDone) return late_error("ncclCommDestroy");
  if (*result == ncclSuccess || *result == ncclInProgress) return {};
  return nccl_error(*result, "ncclCommDestroy");
}

void NcclComm::begin_child(std::shared_ptr<NcclComm> child) {
  const std::lock_guard lock(children_mutex_);
  children_.push_back(std::move(child));
}

void NcclComm::finish_child(const std::shared_ptr<NcclComm>& child) {
  const std::lock_guard lock(children_mutex_);
  std::erase(children_, child);
}

}  // namespace muster::comm::detail
