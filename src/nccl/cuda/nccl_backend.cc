// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/nccl_backend.h"

#include <algorithm>
#include <utility>

#include "nccl/cuda/device.h"
#include "nccl/cuda/issue.h"
#include "nccl/cuda/trouble.h"
#include "store/deadline.h"

namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

// What freeing gets that nobody gave a deadline.
constexpr std::chrono::seconds kDropTime{2};

constexpr const char* kFinalize = "ncclCommFinalize";

bool is_barrier(const Operation& operation) {
  return operation.kind == OpKind::kBarrier;
}

Error no_process_error() {
  return stopped_error("nccl: the process is ending, or has forked");
}

// Memory that NCCL knows. It forgets it with the communicator, so there is nothing to do after it.
class Registration {
 public:
  Registration(std::shared_ptr<NcclComm> comm, void* handle)
      : comm_(std::move(comm)), handle_(handle) {}
  ~Registration() {
    if (!driver_usable()) return;
    comm_->call_soon([this](ncclComm_t comm) {
      const DeviceScope device(comm_->cuda(), comm_->device());
      return comm_->nccl().CommDeregister(comm, handle_);
    });
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  const std::shared_ptr<NcclComm> comm_;
  void* const handle_;
};

}  // namespace

NcclBackend::NcclBackend(const BackendPlan& plan, std::shared_ptr<NcclComm> comm)
    : rank_(plan.rank),
      size_(plan.size),
      timeout_(plan.options.timeout),
      comm_(std::move(comm)),
      pool_(std::make_shared<EventPool>(comm_->cuda(), comm_->device())) {}

Result<std::unique_ptr<CommBackend>> NcclBackend::own(const BackendPlan& plan,
                                                      std::shared_ptr<NcclComm> comm,
                                                      Duration store, Clock::time_point begin) {
  std::unique_ptr<NcclBackend> backend(new NcclBackend(plan, std::move(comm)));
  // What a barrier needs is made now: later it could have to wait for what hangs.
  Result<void> made = backend->make_barrier_parts();
  // NCCL connects the ranks in their first operation, while it is put into the stream, and that
  // waits for the others. Now they are all here; later a call that must not wait would wait, and
  // what keeps them from connecting would be found by the first operation.
  if (made) {
    const Operation first{.kind = OpKind::kBarrier};
    made = backend->run({&first, 1}, plan.deadline);
  }
  if (!made) return made.error();  // its destructor aborts
  backend->comm_->begin_use();
  forget_nccl_words();
  backend->timings_.store = store;
  backend->timings_.library = std::chrono::duration_cast<Duration>(Clock::now() - begin);
  return std::unique_ptr<CommBackend>(std::move(backend));
}

NcclBackend::~NcclBackend() {
  // Neither the device nor the peers are waited for; the bound is for a driver that hangs.
  if (comm_->open()) (void)abort(Clock::now() + kDropTime);
  free_barrier_parts();
}

Result<void> NcclBackend::make_barrier_parts() {
  const DeviceScope device(cuda(), comm_->device());
  // A stream that takes turns with the default stream, so that a barrier stands between what was
  // put there before and what comes after.
  Result<void> made = cuda_result(cuda().StreamCreateWithFlags(&barrier_stream_, cudaStreamDefault),
                                  "cudaStreamCreateWithFlags");
  if (made) made = cuda_result(cuda().Malloc(&barrier_data_, sizeof(int32_t)), "cudaMalloc");
  return made;
}

void NcclBackend::free_barrier_parts() {
  void* data = std::exchange(barrier_data_, nullptr);
  cudaStream_t stream = std::exchange(barrier_stream_, nullptr);
  if (!driver_usable() || (data == nullptr && stream == nullptr)) return;
  // cudaFree waits for the device, and that may be busy with what hangs.
  (void)run_bounded(nullptr, Clock::now() + kDropTime, [comm = comm_, data, stream] {
    const DeviceScope device(comm->cuda(), comm->device());
    if (stream != nullptr) comm->cuda().StreamDestroy(stream);
    if (data != nullptr) comm->cuda().Free(data);
  });
}

Operation NcclBackend::barrier_operation() const {
  const Buffer buffer = Buffer::device(barrier_data_, 1, DataType::kInt32, barrier_stream_);
  return Operation{.kind = OpKind::kBarrier, .in = buffer, .out = buffer};
}

Result<void> NcclBackend::run(std::span<const Operation> operations, Deadline deadline) {
  Result<std::shared_ptr<Pending>> pending = start(operations, deadline);
  if (!pending) return pending.error();
  return settle(deadline);
}

Result<std::shared_ptr<Pending>> NcclBackend::start(std::span<const Operation> operations,
                                                    Deadline deadline) {
  if (!driver_usable()) return no_process_error();
  const DeviceScope device(cuda(), comm_->device());
  if (device.error() != cudaSuccess) return cuda_error(device.error(), "cuda: cudaSetDevice");
  std::vector<Operation> with_barriers;
  if (std::any_of(operations.begin(), operations.end(), is_barrier)) {
    with_barriers.assign(operations.begin(), operations.end());
    std::replace_if(with_barriers.begin(), with_barriers.end(), is_barrier, barrier_operation());
    operations = with_barriers;
    // It comes after all that was begun before on this communicator, whatever the stream.
    const Result<void> ordered = last_ ? last_->let_wait(barrier_stream_) : Result<void>();
    if (!ordered) return ordered.error();
  }
  const Result<void> done = put_into_streams(operations, deadline);
  if (!done) return done.error();
  Result<std::shared_ptr<NcclPending>> pending = mark_streams(operations);
  if (!pending) return comm_->in_use(std::move(pending).error());
  last_ = *pending;
  return std::shared_ptr<Pending>(*pending);
}

Result<void> NcclBackend::put_into_streams(std::span<const Operation> operations,
                                           Deadline deadline) {
  const char* what = "ncclGroupStart";
  Result<void> issued = comm_->call(what, deadline, [&](ncclComm_t comm) {
    const GroupCaller caller{.nccl = nccl(), .comm = comm, .rank = rank_, .size = size_};
    const Issued group = issue_group(caller, operations);
    what = group.call;
    return group.result;
  });
  // What NCCL has not taken leaves everything as it was.
  const bool refused = !issued && issued.error().nccl_result == ncclInvalidArgument;
  if (refused) return issued;
  if (!issued) return comm_->in_use(std::move(issued).error());
  // It may go on behind, with connections that are made for the first operation of its kind. Until
  // that is over nothing else may come into these streams.
  return comm_->wait_ready("ncclGroupEnd", deadline);
}

Result<std::shared_ptr<NcclPending>> NcclBackend::mark_streams(
    std::span<const Operation> operations) {
  auto pending = std::make_shared<NcclPending>(comm_, pool_);
  std::vector<cudaStream_t> streams;
  for (const Operation& operation : operations) {
    const cudaStream_t stream = stream_of(operation);
    if (std::find(streams.begin(), streams.end(), stream) != streams.end()) continue;
    streams.push_back(stream);
    const Result<void> marked = pending->mark(stream);
    if (!marked) return marked.error();
  }
  return pending;
}

// Until all that was begun has ended.
Result<void> NcclBackend::settle(Deadline deadline) {
  if (last_ == nullptr) return {};
  const std::optional<Result<void>> ended = last_->wait(deadline);
  if (!ended) return late_error("nccl");
  return *ended;
}

Result<void> NcclBackend::revoke() {
  if (!driver_usable()) return {};
  if (nccl().CommRevoke != nullptr) {
    // What hangs on the device ends by that too, and others can be made out of it afterwards. How
    // it went is asked then.
    comm_->stop();
    comm_->call_soon([this](ncclComm_t comm) {
      const DeviceScope device(cuda(), comm_->device());
      const ncclResult_t revoked = nccl().CommRevoke(comm, 0);
      revoked_ = revoked_ || revoked == ncclSuccess || revoked == ncclInProgress;
      return revoked;
    });
  }
  if (!revoked_) stop();
  return {};
}

// last_ is not touched: another thread may be in settle().
Result<void> NcclBackend::abort(Deadline deadline) {
  return comm_->abort(deadline);
}

Result<void> NcclBackend::close(Deadline deadline) {
  Result<void> closed = finalize(deadline);
  if (closed) closed = comm_->destroy(deadline);
  // There is no other way to free it then.
  if (!closed) (void)comm_->abort(std::max(deadline, Clock::now() + kDropTime));
  last_.reset();
  free_barrier_parts();
  return closed;
}

Result<void> NcclBackend::finalize(Deadline deadline) {
  if (!driver_usable()) return no_process_error();
  Result<void> done = settle(deadline);
  if (!done) return done;
  const auto finalized = std::make_shared<Result<void>>();
  const Ended ended = run_bounded(comm_->signal(), deadline, [comm = comm_, deadline, finalized] {
    const DeviceScope device(comm->cuda(), comm->device());
    const char* what = kFinalize;
    *finalized = comm->call(what, deadline,
                            [&](ncclComm_t handle) { return comm->nccl().CommFinalize(handle); });
  });
  if (ended == Ended::kStopped) return stopped_error(kFinalize);
  if (ended == Ended::kLate) return late_error(kFinalize);
  if (!*finalized) return *finalized;
  return comm_->wait_ready(kFinalize, deadline);
}

Result<void> NcclBackend::status() {
  if (comm_->signal()->stopped() || !comm_->open()) return stopped_error("nccl");
  if (!driver_usable()) return no_process_error();
  if (std::optional<Error> error = comm_->async_error("nccl")) return *std::move(error);
  return {};
}

Result<std::shared_ptr<void>> NcclBackend::register_buffer(const Buffer& buffer) {
  if (nccl().CommRegister == nullptr || nccl().CommDeregister == nullptr) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = "nccl: registered buffers need NCCL 2.19, and " + nccl().path + " is " +
                            nccl_version_text(nccl().version)};
  }
  if (!driver_usable()) return no_process_error();
  const DeviceScope device(cuda(), comm_->device());
  void* handle = nullptr;
  const Deadline deadline = deadline_in(timeout_);
  const char* what = "ncclCommRegister";
  const Result<void> registered = comm_->call(what, deadline, [&](ncclComm_t comm) {
    return nccl().CommRegister(comm, buffer.data, buffer.bytes(), &handle);
  });
  if (!registered) return registered.error();
  return std::shared_ptr<void>(std::make_shared<Registration>(comm_, handle));
}

}  // namespace muster::comm::detail
