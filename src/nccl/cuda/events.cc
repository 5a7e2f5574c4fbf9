// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/events.h"

#include "nccl/cuda/device.h"
#include "nccl/cuda/trouble.h"

namespace muster::comm::detail {

EventPool::~EventPool() {
  if (!driver_usable()) return;
  for (cudaEvent_t event : idle_)
    cuda_.EventDestroy(event);
}

Result<cudaEvent_t> EventPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      cudaEvent_t event = idle_.back();
      idle_.pop_back();
      return event;
    }
  }
  const DeviceScope device(cuda_, device_);
  cudaEvent_t event = nullptr;
  const cudaError_t made = cuda_.EventCreateWithFlags(&event, cudaEventDisableTiming);
  if (made != cudaSuccess) return cuda_error(made, "cudaEventCreateWithFlags");
  return event;
}

void EventPool::give(cudaEvent_t event) {
  {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) {
      idle_.push_back(event);
      return;
    }
  }
  if (driver_usable()) cuda_.EventDestroy(event);
}

size_t EventPool::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_.size();
}

NcclPending::~NcclPending() {
  for (cudaEvent_t event : events_)
    pool_->give(event);
}

Result<void> NcclPending::mark(cudaStream_t stream) {
  Result<cudaEvent_t> event = pool_->take();
  if (!event) return event.error();
  events_.push_back(*event);
  return cuda_result(comm_->cuda().EventRecord(*event, stream), "cudaEventRecord");
}

Result<void> NcclPending::let_wait(cudaStream_t stream) const {
  for (cudaEvent_t event : events_) {
    Result<void> waits =
        cuda_result(comm_->cuda().StreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
    if (!waits) return waits;
  }
  return {};
}

std::optional<Result<void>> NcclPending::poll_events() const {
  const CudaTable& cuda = comm_->cuda();
  for (cudaEvent_t event : events_) {
    const cudaError_t state = cuda.EventQuery(event);
    if (state == cudaSuccess) continue;
    if (state != cudaErrorNotReady) return cuda_error(state, "cudaEventQuery");
    // Some runtimes remember it as an error, which the program's next check would find.
    if (cuda.PeekAtLastError() == cudaErrorNotReady) (void)cuda.GetLastError();
    return std::nullopt;
  }
  return Result<void>();
}

std::optional<Result<void>> NcclPending::poll() {
  if (comm_->signal()->stopped()) return stopped_error("nccl");
  if (!driver_usable()) return stopped_error("nccl: the process ends or has forked");
  std::optional<Result<void>> events = poll_events();
  if (events && !*events) events = comm_->in_use(std::move(*events).error());
  // After an error nothing is known of what the operations have written, even where they ended.
  if (std::optional<Error> error = comm_->async_error("nccl")) return *std::move(error);
  return events;
}

std::optional<Result<void>> NcclPending::wait(Deadline deadline) {
  // Unlike the general one it ends at once when it is stopped.
  for (Pause pause;; pause.wait(*comm_->signal())) {
    std::optional<Result<void>> ended = poll();
    if (ended || std::chrono::steady_clock::now() >= deadline) return ended;
  }
}

}  // namespace muster::comm::detail
