// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/issue.h"

namespace muster::comm::detail {
namespace {

constexpr ncclDataType_t kTypes[kDataTypes] = {ncclInt8,    ncclUint8,   ncclInt32,   ncclUint32,
                                               ncclInt64,   ncclUint64,  ncclFloat16, ncclFloat32,
                                               ncclFloat64, ncclBfloat16};

bool failed(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

// An open group of calls of this thread. It is closed in any case: one that stays open would
// swallow every later call of the thread, whatever its communicator.
class Group {
 public:
  explicit Group(const NcclTable& nccl) : nccl_(nccl), opened_(nccl.GroupStart()) {}
  ~Group() {
    if (open_) (void)nccl_.GroupEnd();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ncclResult_t opened() const { return opened_; }
  ncclResult_t end() {
    open_ = false;
    return nccl_.GroupEnd();
  }

 private:
  const NcclTable& nccl_;
  const ncclResult_t opened_;
  bool open_ = opened_ == ncclSuccess;
};

// One operation's calls.
class Calls {
 public:
  Calls(const GroupCaller& caller, const Operation& operation, Issued& issued)
      : caller_(caller), operation_(operation), issued_(issued), stream_(stream_of(operation)) {}

  void make();

 private:
  const NcclTable& nccl() const { return caller_.nccl; }
  size_t ranks() const { return static_cast<size_t>(caller_.size); }
  int root() const { return operation_.root_or_peer; }
  bool is_root() const { return caller_.rank == root(); }
  ncclDataType_t type() const { return nccl_type(element()); }
  DataType element() const {
    return operation_.in.data != nullptr ? operation_.in.type : operation_.out.type;
  }
  ncclRedOp_t reduction() const { return nccl_reduction(operation_.reduce); }

  // In-place forms may give only one of them.
  const void* in(size_t first = 0) const {
    const void* data = operation_.in.data != nullptr ? operation_.in.data : operation_.out.data;
    return static_cast<const std::byte*>(data) + first * size_of(element());
  }
  void* out(size_t first = 0) const {
    return static_cast<std::byte*>(operation_.out.data) + first * size_of(element());
  }

  // After the first that failed nothing more is called: the group must still be closed.
  template <typename... Parameters, typename... Arguments>
  void call(const char* name, ncclResult_t (*function)(Parameters...), Arguments... arguments) {
    if (failed(issued_.result)) return;
    const ncclResult_t result = function(arguments...);
    if (failed(result)) issued_ = {result, name};
  }
  // Both sides leave out what is empty, which they know from the counts.
  void send(size_t first, size_t count, int peer) {
    if (count == 0) return;
    call("ncclSend", nccl().Send, in(first), count, type(), peer, caller_.comm, stream_);
  }
  void recv(size_t first, size_t count, int peer) {
    if (count == 0) return;
    call("ncclRecv", nccl().Recv, out(first), count, type(), peer, caller_.comm, stream_);
  }

  void broadcast(size_t in_first, size_t out_first, size_t count, int root);
  void reduce(size_t first, void* to, size_t count, int root);
  void scatter();
  void gather();
  void all_gather();
  void reduce_scatter();
  void all_to_all();

  const GroupCaller& caller_;
  const Operation& operation_;
  Issued& issued_;
  const cudaStream_t stream_;
};

void Calls::broadcast(size_t in_first, size_t out_first, size_t count, int root) {
  if (count == 0) return;
  call("ncclBroadcast", nccl().Broadcast, in(in_first), out(out_first), count, type(), root,
       caller_.comm, stream_);
}

void Calls::reduce(size_t first, void* to, size_t count, int root) {
  if (count == 0) return;
  call("ncclReduce", nccl().Reduce, in(first), to, count, type(), reduction(), root, caller_.comm,
       stream_);
}

void Calls::scatter() {
  const size_t count = operation_.out.count;
  if (nccl().Scatter != nullptr) {
    if (count == 0) return;
    call("ncclScatter", nccl().Scatter, operation_.in.data, out(), count,
         nccl_type(operation_.out.type), root(), caller_.comm, stream_);
    return;
  }
  for (size_t rank = 0; is_root() && rank < ranks(); ++rank) {
    send(rank * count, count, static_cast<int>(rank));
  }
  recv(0, count, root());
}

void Calls::gather() {
  const size_t count = operation_.in.count;
  if (nccl().Gather != nullptr) {
    if (count == 0) return;
    call("ncclGather", nccl().Gather, in(), operation_.out.data, count, type(), root(),
         caller_.comm, stream_);
    return;
  }
  for (size_t rank = 0; is_root() && rank < ranks(); ++rank) {
    recv(rank * count, count, static_cast<int>(rank));
  }
  send(0, count, root());
}

void Calls::all_gather() {
  if (operation_.counts.empty()) {
    const size_t count = operation_.out.count / ranks();
    if (count == 0) return;
    call("ncclAllGather", nccl().AllGather, in(), out(), count, type(), caller_.comm, stream_);
    return;
  }
  size_t first = 0;
  for (size_t rank = 0; rank < ranks(); ++rank) {
    broadcast(0, first, operation_.counts[rank], static_cast<int>(rank));
    first += operation_.counts[rank];
  }
}

void Calls::reduce_scatter() {
  if (operation_.counts.empty()) {
    const size_t count = operation_.out.count;
    if (count == 0) return;
    call("ncclReduceScatter", nccl().ReduceScatter, in(), out(), count, type(), reduction(),
         caller_.comm, stream_);
    return;
  }
  size_t first = 0;
  for (size_t rank = 0; rank < ranks(); ++rank) {
    const bool mine = static_cast<int>(rank) == caller_.rank;
    reduce(first, mine ? out() : nullptr, operation_.counts[rank], static_cast<int>(rank));
    first += operation_.counts[rank];
  }
}

void Calls::all_to_all() {
  const bool even = operation_.counts.empty();
  const size_t count = even ? operation_.out.count / ranks() : 0;
  if (even && nccl().AlltoAll != nullptr) {
    if (count == 0) return;
    call("ncclAlltoAll", nccl().AlltoAll, in(), out(), count, type(), caller_.comm, stream_);
    return;
  }
  size_t sent = 0;
  size_t received = 0;
  for (size_t rank = 0; rank < ranks(); ++rank) {
    const size_t there = even ? count : operation_.counts[rank];
    const size_t here = even ? count : operation_.out_counts[rank];
    send(sent, there, static_cast<int>(rank));
    recv(received, here, static_cast<int>(rank));
    sent += there;
    received += here;
  }
}

void Calls::make() {
  switch (operation_.kind) {
    case OpKind::kSend:
      return send(0, operation_.in.count, root());
    case OpKind::kRecv:
      return recv(0, operation_.out.count, root());
    case OpKind::kBroadcast:
      return broadcast(0, 0, operation_.out.count, root());
    case OpKind::kReduce:
      return reduce(0, operation_.out.data, operation_.in.count, root());
    case OpKind::kAllReduce:
    case OpKind::kBarrier:
      if (operation_.out.count == 0) return;
      return call("ncclAllReduce", nccl().AllReduce, in(), out(), operation_.out.count, type(),
                  reduction(), caller_.comm, stream_);
    case OpKind::kScatter:
      return scatter();
    case OpKind::kGather:
      return gather();
    case OpKind::kAllGather:
      return all_gather();
    case OpKind::kReduceScatter:
      return reduce_scatter();
    case OpKind::kAllToAll:
      return all_to_all();
  }
}

}  // namespace

Issued issue_group(const GroupCaller& caller, std::span<const Operation> operations) {
  Group group(caller.nccl);
  if (failed(group.opened())) return {group.opened(), "ncclGroupStart"};
  Issued issued;
  for (const Operation& operation : operations)
    Calls(caller, operation, issued).make();
  const ncclResult_t ended = group.end();
  // What a call said is nearer to the cause than what the group's end says of it.
  if (!failed(issued.result)) issued = {ended, "ncclGroupEnd"};
  return issued;
}

cudaStream_t stream_of(const Operation& operation) {
  const bool by_in = operation.in.memory == Memory::kDevice && operation.in.data != nullptr;
  return static_cast<cudaStream_t>(by_in ? operation.in.stream : operation.out.stream);
}

ncclDataType_t nccl_type(DataType type) {
  return kTypes[static_cast<size_t>(type)];
}

ncclRedOp_t nccl_reduction(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kProduct:
      return ncclProd;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kAverage:
      return ncclAvg;
  }
  return ncclSum;
}

}  // namespace muster::comm::detail
