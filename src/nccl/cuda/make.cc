// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/make.h"

#include <mutex>

#include "nccl/cuda/device.h"
#include "nccl/cuda/trouble.h"

namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

// The thread that makes it looks at the deadline itself; it is given up only when it is stuck.
constexpr std::chrono::milliseconds kGrace{300};
constexpr std::chrono::seconds kFreeing{2};

// Owned by the thread that makes the communicator, which may be stuck in NCCL for ever.
class Making {
 public:
  Making(std::shared_ptr<NcclComm> comm, std::shared_ptr<NcclComm> parent, const char* name,
         MakeCall call, Deadline deadline)
      : comm_(std::move(comm)),
        parent_(std::move(parent)),
        name_(name),
        call_(std::move(call)),
        deadline_(deadline) {}

  // In its own thread.
  void run();
  // Whoever waits for it goes; false: it has just ended.
  bool abandon();
  const Result<void>& result() const { return result_; }
  bool parent_done() const { return parent_done_; }

 private:
  Result<void> make();

  const std::shared_ptr<NcclComm> comm_;
  const std::shared_ptr<NcclComm> parent_;
  const char* const name_;
  MakeCall call_;
  const Deadline deadline_;
  Result<void> result_;
  bool parent_done_ = false;  // with making it, well or not

  std::mutex mutex_;
  bool ended_ = false;
  bool abandoned_ = false;
};

Result<void> Making::make() {
  const DeviceScope device(comm_->cuda(), comm_->device());
  if (device.error() != cudaSuccess) return cuda_error(device.error(), "cuda: cudaSetDevice");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (!comm_->name().empty()) config.commName = comm_->name().c_str();
#endif
  if (parent_ != nullptr) {
    // A parent that is being revoked takes no calls until that is over.
    Result<void> ready = parent_->wait_ready(name_, deadline_, *comm_->signal());
    if (!ready) return ready;
  }
  const Result<ncclResult_t> called = call_(comm_->made(), &config);
  if (!called || (*called != ncclSuccess && *called != ncclInProgress)) {
    parent_done_ = true;
    return called ? nccl_error(*called, name_) : called.error();
  }
  if (parent_ != nullptr) {
    // The new one stands in made() when the parent has nothing going on any more.
    Result<void> done = parent_->wait_ready(name_, deadline_, *comm_->signal());
    if (!done) return done;
  }
  parent_done_ = true;
  comm_->adopt();
  if (!comm_->open()) return {};  // this rank is in no group
  return comm_->wait_ready(name_, deadline_);
}

void Making::run() {
  result_ = make();
  const std::lock_guard lock(mutex_);
  ended_ = true;
  // Nobody waits any more: it is freed here, where NCCL has come back.
  if (abandoned_) (void)comm_->abort(Clock::now() + kFreeing);
}

bool Making::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  return !ended_;
}

}  // namespace

Result<void> make_comm(const std::shared_ptr<NcclComm>& comm,
                       const std::shared_ptr<NcclComm>& parent, const char* name, MakeCall call,
                       Deadline deadline) {
  const auto making = std::make_shared<Making>(comm, parent, name, std::move(call), deadline);
  if (parent != nullptr) parent->begin_child(comm);
  const Ended ended = run_bounded(comm->signal(), deadline + kGrace, [making] { making->run(); });
  if (ended != Ended::kDone && making->abandon()) {
    // One that has a handle already may be stuck because it is not aborted.
    (void)comm->abort(Clock::now() + kFreeing);
    return ended == Ended::kStopped ? stopped_error(name)
                                    : late_error(name, "the call has not come back");
  }
  if (making->result()) return {};
  // What a parent has not finished may still come, and is freed with the parent.
  if (parent != nullptr && making->parent_done()) parent->finish_child(comm);
  (void)comm->abort(Clock::now() + kFreeing);
  return making->result();
}

}  // namespace muster::comm::detail
