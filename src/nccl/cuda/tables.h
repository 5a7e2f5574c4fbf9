// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>
#include <nccl.h>

#include <string>

// The functions of NCCL and of the CUDA runtime that are used here, as tables that are filled by
// dlopen and dlsym: a program starts on machines without them, and a library that is newer than the
// headers of the build serves with what it has more. Their types are those of the headers where the
// function is older than the oldest headers that do, otherwise they are written out here.
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 14, 0)
#error "muster needs the headers of NCCL 2.14 or newer (communicators that do not block)"
#endif

namespace muster::comm::detail {

// As ncclGetVersion() says it.
constexpr int kOldestNccl = NCCL_VERSION(2, 14, 0);

// clang-format off
#define MUSTER_NCCL_FUNCTIONS(X) \
  X(GetVersion) \
  X(GetUniqueId) \
  X(CommInitRankConfig) \
  X(CommFinalize) \
  X(CommDestroy) \
  X(CommAbort) \
  X(CommGetAsyncError) \
  X(GetErrorString) \
  X(GetLastError) \
  X(AllReduce) \
  X(Broadcast) \
  X(Reduce) \
  X(AllGather) \
  X(ReduceScatter) \
  X(Send) \
  X(Recv) \
  X(GroupStart) \
  X(GroupEnd)

#define MUSTER_CUDA_FUNCTIONS(X) \
  X(GetDeviceCount) \
  X(GetDevice) \
  X(SetDevice) \
  X(DeviceGetPCIBusId) \
  X(EventRecord) \
  X(EventQuery) \
  X(EventDestroy) \
  X(StreamDestroy) \
  X(StreamWaitEvent) \
  X(Free) \
  X(GetErrorName) \
  X(GetErrorString) \
  X(GetLastError) \
  X(PeekAtLastError) \
  X(DriverGetVersion) \
  X(RuntimeGetVersion)
// clang-format on

struct NcclTable {
  int version = 0;
  std::string path{};  // of the library

  // A member's name takes no parentheses.
#define MUSTER_MEMBER(name) \
  decltype(&::nccl##name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)
  MUSTER_NCCL_FUNCTIONS(MUSTER_MEMBER)
#undef MUSTER_MEMBER

  // Null where the library is older; asked by version as well as by name.
  ncclResult_t (*CommSplit)(ncclComm_t comm, int color, int key, ncclComm_t* made,
                            ncclConfig_t* config) = nullptr;  // 2.18
  ncclResult_t (*CommRegister)(ncclComm_t comm, void* data, size_t size, void** handle) = nullptr;
  ncclResult_t (*CommDeregister)(ncclComm_t comm, void* handle) = nullptr;  // 2.19
  ncclResult_t (*CommInitRankScalable)(ncclComm_t* comm, int size, int rank, int ids,
                                       ncclUniqueId* id, ncclConfig_t* config) = nullptr;  // 2.23
  ncclResult_t (*CommShrink)(ncclComm_t comm, int* excluded, int count, ncclComm_t* made,
                             ncclConfig_t* config, int flags) = nullptr;  // 2.27
  ncclResult_t (*CommRevoke)(ncclComm_t comm, int flags) = nullptr;       // 2.28
  ncclResult_t (*AlltoAll)(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) = nullptr;  // 2.28
  ncclResult_t (*Gather)(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream) = nullptr;  // 2.28
  ncclResult_t (*Scatter)(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                          ncclComm_t comm, cudaStream_t stream) = nullptr;       // 2.28
  ncclResult_t (*CommGetUniqueId)(ncclComm_t comm, ncclUniqueId* id) = nullptr;  // 2.29
  ncclResult_t (*CommGrow)(ncclComm_t comm, int size, const ncclUniqueId* id, int rank,
                           ncclComm_t* made, ncclConfig_t* config) = nullptr;  // 2.29
};

struct CudaTable {
  std::string path{};

#define MUSTER_MEMBER(name) \
  decltype(&::cuda##name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)
  MUSTER_CUDA_FUNCTIONS(MUSTER_MEMBER)
#undef MUSTER_MEMBER
  // Overloaded by the C++ headers, so written out.
  cudaError_t (*Malloc)(void** data, size_t size) = nullptr;
  cudaError_t (*EventCreateWithFlags)(cudaEvent_t* event, unsigned flags) = nullptr;
  cudaError_t (*StreamCreateWithFlags)(cudaStream_t* stream, unsigned flags) = nullptr;
  // Null in very old ones. `properties` is as large as the library of any version wants it: only
  // what has stood at the same place in all of them is read (device.cc).
  cudaError_t (*GetDeviceProperties)(void* properties, int device) = nullptr;
};

// Opened at the first call; a failure is kept, so that each call says the same. They are never
// closed, since threads of their own may run in them until the process ends.
//
// MUSTER_NCCL_LIBRARY and MUSTER_CUDART_LIBRARY (paths) take the place of "libnccl.so.2" and of
// "libcudart.so.<major version>". kUnavailable: not there, or too old.
Result<const NcclTable*> nccl_table();
Result<const CudaTable*> cuda_table();

// "2.28.9".
std::string nccl_version_text(int version);

// False once the process is on its way out or is the fork of the one that opened the libraries:
// the driver may not be called then, and what it holds is let go of with the process.
bool driver_usable();

}  // namespace muster::comm::detail
