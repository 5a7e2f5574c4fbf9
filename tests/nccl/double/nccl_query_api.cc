// SPDX-License-Identifier: Apache-2.0
// NCCL's functions that tell something, and those about memory. All signatures are nccl.h's.
#include <nccl.h>

#include <numeric>
#include <vector>

#include "bootstrap.h"
#include "comm.h"
#include "group.h"
#include "log.h"
#include "memory.h"

using namespace doubles;

namespace {

ncclResult_t tell(const char* function, ncclComm_t handle, int ncclComm::*what, int* out) {
  if (ncclResult_t fault = enter_nccl(function)) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, function);
  if (!comm || !out) return ncclInvalidArgument;
  if (ncclResult_t state = ensure_ready(*comm)) return state;
  *out = (*comm).*what;
  return ncclSuccess;
}

ncclResult_t add_registered(ncclComm& comm, void* memory, size_t bytes, void** handle) {
  if (!handle || !device_can_reach(memory, bytes) || bytes == 0) {
    warn("register: %p is no device memory of %zu bytes", memory, bytes);
    return ncclInvalidArgument;
  }
  std::lock_guard lock(comm.mutex);
  // Its own address is as good as any.
  auto& entry = comm.registered[memory];
  entry = {memory, bytes};
  *handle = &entry;
  return ncclSuccess;
}

ncclResult_t drop_registered(ncclComm& comm, const void* handle) {
  std::lock_guard lock(comm.mutex);
  size_t dropped =
      std::erase_if(comm.registered, [&](const auto& entry) { return &entry.second == handle; });
  if (dropped == 1) return ncclSuccess;
  warn("Deregister handle %p: Invalid handle", handle);
  return ncclInvalidArgument;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (ncclResult_t fault = enter_nccl("ncclGetVersion")) return fault;
  if (!version) return ncclInvalidArgument;
  *version = library_version();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) {
  return last_error_text();
}

void ncclResetDebugInit() {}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* out) {
  if (ncclResult_t fault = enter_nccl("ncclCommGetAsyncError")) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommGetAsyncError");
  if (!comm || !out) return ncclInvalidArgument;
  *out = comm->get_state();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return tell("ncclCommCount", comm, &ncclComm::ranks, count);
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return tell("ncclCommCuDevice", comm, &ncclComm::device, device);
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return tell("ncclCommUserRank", comm, &ncclComm::rank, rank);
}

ncclResult_t ncclMemAlloc(void** memory, size_t bytes) {
  if (ncclResult_t fault = enter_nccl("ncclMemAlloc")) return fault;
  cudaError_t error = cudaMalloc(memory, bytes);
  return error == cudaSuccess ? ncclSuccess : cuda_failure(error);
}

ncclResult_t ncclMemFree(void* memory) {
  if (ncclResult_t fault = enter_nccl("ncclMemFree")) return fault;
  cudaError_t error = cudaFree(memory);
  return error == cudaSuccess ? ncclSuccess : cuda_failure(error);
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* memory, size_t bytes, void** out) {
  if (ncclResult_t fault = enter_nccl("ncclCommRegister")) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommRegister");
  if (!comm) return ncclInvalidArgument;
  if (ncclResult_t state = ensure_ready(*comm)) return state;
  return add_registered(*comm, memory, bytes, out);
}

ncclResult_t ncclCommDeregister(const ncclComm_t handle, void* registered) {
  if (ncclResult_t fault = enter_nccl("ncclCommDeregister")) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommDeregister");
  return comm ? drop_registered(*comm, registered) : ncclInvalidArgument;
}

// All ranks must come: it waits for them.
ncclResult_t ncclCommWindowRegister(ncclComm_t handle, void* memory, size_t bytes,
                                    ncclWindow_t* out, int) {
  if (ncclResult_t fault = enter_nccl("ncclCommWindowRegister")) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommWindowRegister");
  if (!comm || !out) return ncclInvalidArgument;
  if (ncclResult_t state = ensure_ready(*comm)) return state;
  void* window = nullptr;
  if (ncclResult_t wrong = add_registered(*comm, memory, bytes, &window)) return wrong;
  *out = static_cast<ncclWindow_t>(window);
  int turn = comm->meetings++;
  return submit_job(comm, [comm, turn] {
    std::vector<int> everybody(static_cast<size_t>(comm->ranks));
    std::iota(everybody.begin(), everybody.end(), 0);
    std::vector<PeerInfo> ignored;
    return result_of(comm->links->meet(everybody, turn, {}, &ignored, comm->stop_all), "windows");
  });
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t handle, ncclWindow_t window) {
  if (ncclResult_t fault = enter_nccl("ncclCommWindowDeregister")) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommWindowDeregister");
  return comm ? drop_registered(*comm, window) : ncclInvalidArgument;
}

// None of NCCL's: how many communicators of this process were not freed yet.
int doubleCommsLeft() {
  return static_cast<int>(comms_left());
}

#define PROFILING_NAME(name) decltype(name) p##name __attribute__((alias(#name)));
PROFILING_NAME(ncclGetVersion)
PROFILING_NAME(ncclGetErrorString)
PROFILING_NAME(ncclGetLastError)
PROFILING_NAME(ncclCommGetAsyncError)
PROFILING_NAME(ncclCommCount)
PROFILING_NAME(ncclCommCuDevice)
PROFILING_NAME(ncclCommUserRank)
PROFILING_NAME(ncclMemAlloc)
PROFILING_NAME(ncclMemFree)
PROFILING_NAME(ncclCommRegister)
PROFILING_NAME(ncclCommDeregister)
PROFILING_NAME(ncclCommWindowRegister)
PROFILING_NAME(ncclCommWindowDeregister)
#undef PROFILING_NAME

}  // extern "C"
