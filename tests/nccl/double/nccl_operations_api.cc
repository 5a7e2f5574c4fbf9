// SPDX-License-Identifier: Apache-2.0
// NCCL's communication functions. All signatures are nccl.h's.
#include <nccl.h>

#include <cstring>

#include "comm.h"
#include "group.h"
#include "log.h"
#include "memory.h"

using namespace doubles;

namespace {

// What a call needs to be taken.
struct Taken {
  const char* name;
  Operation operation;
  ncclComm_t comm;
  ncclRedOp_t op = ncclSum;
};

ncclResult_t find_reduction(const char* name, ncclComm& comm, ncclRedOp_t op, Reduction* out) {
  int number = static_cast<int>(op);
  if (number >= 0 && number < ncclNumOps) {
    out->op = op;
    return ncclSuccess;
  }
  std::lock_guard lock(comm.mutex);
  auto own = comm.reductions.find(number);
  if (own == comm.reductions.end()) {
    warn("%s : invalid reduction operation %d", name, number);
    return ncclInvalidArgument;
  }
  *out = own->second;
  return ncclSuccess;
}

ncclResult_t check(Taken& call, ncclComm& comm) {
  Operation& operation = call.operation;
  if (ncclResult_t state = ensure_ready(comm)) return state;
  if (comm.revoked || comm.finalized) {
    warn("%s : the communicator was %s", call.name, comm.revoked ? "revoked" : "finalized");
    return ncclInvalidUsage;
  }
  if (static_cast<int>(operation.type) < 0 || operation.type >= ncclNumTypes) {
    warn("%s : invalid type %d", call.name, static_cast<int>(operation.type));
    return ncclInvalidArgument;
  }
  if (operation.root_or_peer < 0 || operation.root_or_peer >= comm.ranks) {
    warn("%s : invalid root %d (root should be in the 0..%d range)", call.name,
         operation.root_or_peer, comm.ranks - 1);
    return ncclInvalidArgument;
  }
  return find_reduction(call.name, comm, call.op, &operation.reduction);
}

ncclResult_t take(Taken call) {
  if (ncclResult_t fault = enter_nccl(call.name)) return refuse(fault);
  std::shared_ptr<ncclComm> comm = find_comm(call.comm, call.name);
  if (!comm) return refuse(ncclInvalidArgument);
  if (ncclResult_t wrong = check(call, *comm)) return refuse(wrong);
  call.operation.comm = std::move(comm);
  return submit(std::move(call.operation));
}

Operation operation(Call call, const void* in, void* out, size_t count, ncclDataType_t type,
                    int root_or_peer, cudaStream_t stream) {
  Operation made;
  made.call = call;
  made.in = in;
  made.out = out;
  made.count = count;
  made.type = type;
  made.root_or_peer = root_or_peer;
  made.stream = stream;
  return made;
}

}  // namespace

extern "C" {

ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return take(
      {"ncclAllReduce", operation(Call::kAllReduce, in, out, count, type, 0, stream), comm, op});
}

ncclResult_t ncclReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return take(
      {"ncclReduce", operation(Call::kReduce, in, out, count, type, root, stream), comm, op});
}

ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return take({"ncclReduceScatter",
               operation(Call::kReduceScatter, in, out, count, type, 0, stream), comm, op});
}

ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return take(
      {"ncclBroadcast", operation(Call::kBroadcast, in, out, count, type, root, stream), comm});
}

ncclResult_t ncclBcast(void* memory, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return take(
      {"ncclBcast", operation(Call::kBroadcast, memory, memory, count, type, root, stream), comm});
}

ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return take(
      {"ncclAllGather", operation(Call::kAllGather, in, out, count, type, 0, stream), comm});
}

ncclResult_t ncclAlltoAll(const void* in, void* out, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  return take({"ncclAlltoAll", operation(Call::kAllToAll, in, out, count, type, 0, stream), comm});
}

ncclResult_t ncclGather(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return take({"ncclGather", operation(Call::kGather, in, out, count, type, root, stream), comm});
}

ncclResult_t ncclScatter(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return take({"ncclScatter", operation(Call::kScatter, in, out, count, type, root, stream), comm});
}

ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return take({"ncclSend", operation(Call::kSend, in, nullptr, count, type, peer, stream), comm});
}

ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return take({"ncclRecv", operation(Call::kRecv, nullptr, out, count, type, peer, stream), comm});
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t handle) {
  if (ncclResult_t fault = enter_nccl("ncclRedOpCreatePreMulSum")) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclRedOpCreatePreMulSum");
  if (!comm || !op || !scalar) return ncclInvalidArgument;
  if (ncclResult_t state = ensure_ready(*comm)) return state;
  Reduction reduction;
  reduction.multiply_first = true;
  if (residence == ncclScalarDevice) {
    reduction.device_scalar = scalar;
  } else {
    const auto* begin = static_cast<const std::byte*>(scalar);
    reduction.scalar.assign(begin, begin + size_of_type(type));
  }
  std::lock_guard lock(comm->mutex);
  int number = comm->reductions.empty() ? ncclNumOps : comm->reductions.rbegin()->first + 1;
  comm->reductions[number] = std::move(reduction);
  *op = static_cast<ncclRedOp_t>(number);
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) {
  if (ncclResult_t fault = enter_nccl("ncclRedOpDestroy")) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclRedOpDestroy");
  if (!comm) return ncclInvalidArgument;
  std::lock_guard lock(comm->mutex);
  if (comm->reductions.erase(static_cast<int>(op)) == 1) return ncclSuccess;
  warn("ncclRedOpDestroy : operator unknown to this communicator");
  return ncclInvalidArgument;
}

#define PROFILING_NAME(name) decltype(name) p##name __attribute__((alias(#name)));
PROFILING_NAME(ncclAllReduce)
PROFILING_NAME(ncclReduce)
PROFILING_NAME(ncclReduceScatter)
PROFILING_NAME(ncclBroadcast)
PROFILING_NAME(ncclBcast)
PROFILING_NAME(ncclAllGather)
PROFILING_NAME(ncclAlltoAll)
PROFILING_NAME(ncclGather)
PROFILING_NAME(ncclScatter)
PROFILING_NAME(ncclSend)
PROFILING_NAME(ncclRecv)
PROFILING_NAME(ncclRedOpCreatePreMulSum)
PROFILING_NAME(ncclRedOpDestroy)
#undef PROFILING_NAME

}  // extern "C"
