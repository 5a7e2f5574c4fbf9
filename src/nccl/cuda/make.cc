// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/make.h"

#include "nccl/cuda/device.h"
#include "nccl/cuda/trouble.h"

namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

// The thread that makes it looks at the deadline itself; it is given up only when it is stuck.
constexpr std::chrono::milliseconds kGrace{300};
constexpr std::chrono::seconds kFreeing{2};

// Owned by the thread that makes the communicator, which may be stuck in NCCL for ever.
struct Making {
  std::shared_ptr<NcclComm> comm;
  std::shared_ptr<NcclComm> parent;
  const char* name;
  MakeCall call;
  Deadline deadline;
  Result<void> result{};
  bool parent_done = false;  // with making it, well or not

  Result<void> make();
  void run();
};

Result<void> Making::make() {
  const DeviceScope device(comm->cuda(), comm->device());
  if (device.error() != cudaSuccess) return cuda_error(device.error(), "cuda: cudaSetDevice");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (!comm->name().empty()) config.commName = comm->name().c_str();
#endif
  if (parent != nullptr) {
    // A parent that is being revoked takes no calls until that is over.
    Result<void> ready = parent->wait_ready(name, deadline, *comm->signal());
    if (!ready) return ready;
  }
  const ncclResult_t called = call(comm->made(), &config);
  if (called != ncclSuccess && called != ncclInProgress) {
    parent_done = true;
    return nccl_error(called, name);
  }
  if (parent != nullptr) {
    // The new one stands in made() when the parent has nothing going on any more.
    Result<void> done = parent->wait_ready(name, deadline, *comm->signal());
    if (!done) return done;
  }
  parent_done = true;
  comm->adopt();
  if (!comm->open()) return {};  // this rank is in no group
  return comm->wait_ready(name, deadline);
}

void Making::run() {
  result = make();
  // Nobody waits any more, or it is of no use: free it here, where NCCL has come back.
  if (!result || comm->signal()->stopped()) (void)comm->abort(Clock::now() + kFreeing);
}

}  // namespace

Result<void> make_comm(const std::shared_ptr<NcclComm>& comm,
                       const std::shared_ptr<NcclComm>& parent, const char* name, MakeCall call,
                       Deadline deadline) {
  const auto making = std::make_shared<Making>(Making{
      .comm = comm, .parent = parent, .name = name, .call = std::move(call), .deadline = deadline});
  if (parent != nullptr) parent->begin_child(comm);
  const Ended ended = run_bounded(comm->signal(), deadline + kGrace, [making] { making->run(); });
  if (ended == Ended::kDone) {
    // What a parent has not finished may still come, and is freed with the parent.
    if (parent != nullptr && making->parent_done) parent->finish_child(comm);
    return making->result;
  }
  comm->stop();
  if (comm->open()) (void)comm->abort(Clock::now() + kFreeing);
  return ended == Ended::kStopped ? stopped_error(name)
                                  : late_error(name, "the call has not come back");
}

}  // namespace muster::comm::detail
