// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "nccl/core/backend.h"
#include "nccl/cuda/comm.h"

namespace muster::comm::detail {

// CUDA events of one device, used again and again: making one takes a lock in the driver. Shared by
// the backend and its operations, from any thread.
class EventPool {
 public:
  static constexpr size_t kMaxIdle = 64;  // more are given back to the driver

  EventPool(const CudaTable& cuda, int device) : cuda_(cuda), device_(device) {}
  ~EventPool();
  Result<cudaEvent_t> take();
  void give(cudaEvent_t event);
  size_t idle() const;

 private:
  const CudaTable& cuda_;
  const int device_;
  mutable std::mutex mutex_;
  std::vector<cudaEvent_t> idle_;
};

// A group of operations that is in its streams. It has ended when the events behind it have come.
class NcclPending final : public Pending {
 public:
  NcclPending(std::shared_ptr<NcclComm> comm, std::shared_ptr<EventPool> pool)
      : comm_(std::move(comm)), pool_(std::move(pool)) {}
  ~NcclPending() override;

  // Puts an event into the stream; once for each stream that the group used.
  Result<void> mark(cudaStream_t stream);
  // Makes what comes on the stream wait for it.
  Result<void> let_wait(cudaStream_t stream) const;
  std::optional<Result<void>> poll() override;
  std::optional<Result<void>> wait(Deadline deadline) override;

 private:
  std::optional<Result<void>> poll_events() const;

  const std::shared_ptr<NcclComm> comm_;
  const std::shared_ptr<EventPool> pool_;
  std::vector<cudaEvent_t> events_;  // not changed once it was handed out
};

}  // namespace muster::comm::detail
