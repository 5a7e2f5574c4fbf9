// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "nccl/core/backend.h"
#include "nccl/cuda/comm.h"
#include "nccl/cuda/events.h"

namespace muster::comm::detail {

// A communicator's work by NCCL: operations are put into the streams of their memory and followed
// by events. Owned by CommunicatorImpl.
class NcclBackend final : public CommBackend {
 public:
  // `comm` is ready since it was begun at `begin`; the ranks meet in a first barrier here.
  static Result<std::unique_ptr<CommBackend>> own(const BackendPlan& plan,
                                                  std::shared_ptr<NcclComm> comm, Duration store,
                                                  std::chrono::steady_clock::time_point begin);
  ~NcclBackend() override;

  bool stream_ordered() const override { return true; }
  Result<void> run(std::span<const Operation> operations, Deadline deadline) override;
  Result<std::shared_ptr<Pending>> start(std::span<const Operation> operations,
                                         Deadline deadline) override;
  // Also begins to free it: what hangs on the device would block the program's streams, and its
  // cudaFree, until then. There is no use for it any more.
  void stop() override { comm_->begin_abort(); }
  Result<void> revoke() override;
  Result<void> abort(Deadline deadline) override;
  Result<void> close(Deadline deadline) override;
  Result<void> status() override;
  Made split(int color, int key, const BackendPlan& plan) override;
  Made shrink(std::span<const int> excluded, const BackendPlan& plan) override;
  Made grow(int joining, const BackendPlan& plan) override;
  Result<std::shared_ptr<void>> register_buffer(const Buffer& buffer) override;
  InitTimings timings() const override { return timings_; }

 private:
  NcclBackend(const BackendPlan& plan, std::shared_ptr<NcclComm> comm);
  const NcclTable& nccl() const { return comm_->nccl(); }
  const CudaTable& cuda() const { return comm_->cuda(); }
  Result<void> make_barrier_parts();
  void free_barrier_parts();
  Operation barrier_operation() const;
  Result<void> put_into_streams(std::span<const Operation> operations, Deadline deadline);
  Result<std::shared_ptr<NcclPending>> mark_streams(std::span<const Operation> operations);
  Result<void> settle(Deadline deadline);
  Result<void> finalize(Deadline deadline);
  bool usable_for_shrink(Deadline deadline);
  using ChildCall =
      std::function<ncclResult_t(ncclComm_t parent, ncclComm_t* made, ncclConfig_t* config)>;
  Result<std::unique_ptr<CommBackend>> make_child(const char* name, const BackendPlan& plan,
                                                  ChildCall call);
  Result<ncclUniqueId> grown_id(const BackendPlan& plan);

  const int rank_;
  const int size_;
  const Duration timeout_;  // of calls that are given none
  InitTimings timings_{};
  const std::shared_ptr<NcclComm> comm_;
  const std::shared_ptr<EventPool> pool_;
  void* barrier_data_ = nullptr;  // one int32 of the device
  cudaStream_t barrier_stream_ = nullptr;
  std::shared_ptr<NcclPending> last_;  // what was begun last
  std::atomic<bool> revoked_ = false;  // by NCCL's own function
};

}  // namespace muster::comm::detail
