// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions about devices and errors. All signatures are cuda_runtime_api.h's.
#include <cuda_runtime_api.h>
#include <strings.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "device.h"
#include "faults.h"
#include "memory.h"
#include "stream.h"

using namespace doubles;

namespace {

constexpr int kMajor = 9;  // as an H200's
constexpr int kProcessors = 132;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
#define ERROR_TEXT(name, text) \
  { name, #name, text }
constexpr ErrorText kErrorTexts[] = {
    ERROR_TEXT(cudaSuccess, "no error"),
    ERROR_TEXT(cudaErrorInvalidValue, "invalid argument"),
    ERROR_TEXT(cudaErrorMemoryAllocation, "out of memory"),
    ERROR_TEXT(cudaErrorInitializationError, "initialization error"),
    ERROR_TEXT(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR_TEXT(cudaErrorInsufficientDriver,
               "CUDA driver version is insufficient for CUDA runtime version"),
    ERROR_TEXT(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    ERROR_TEXT(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR_TEXT(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR_TEXT(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    ERROR_TEXT(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR_TEXT(cudaErrorNotReady, "device not ready"),
    ERROR_TEXT(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR_TEXT(cudaErrorHostMemoryAlreadyRegistered,
               "part or all of the requested memory range is already mapped"),
    ERROR_TEXT(cudaErrorHostMemoryNotRegistered,
               "pointer does not correspond to a registered memory region"),
    ERROR_TEXT(cudaErrorAssert, "device-side assert triggered"),
    ERROR_TEXT(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR_TEXT(cudaErrorNotPermitted, "operation not permitted"),
    ERROR_TEXT(cudaErrorNotSupported, "operation not supported"),
    ERROR_TEXT(cudaErrorUnknown, "unknown error"),
};
#undef ERROR_TEXT

int physical(int device) {
  return Runtime::get().devices[static_cast<size_t>(device)].physical;
}

// Those that a program may reasonably ask for; all others are 0.
int attribute(cudaDeviceAttr which, int device) {
  switch (which) {
    case cudaDevAttrComputeCapabilityMajor:
      return kMajor;
    case cudaDevAttrMultiProcessorCount:
      return kProcessors;
    case cudaDevAttrPciBusId:
      return physical(device) + 1;
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrUnifiedAddressing:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = Runtime::get().driver_version;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (cudaError_t error = enter("cudaGetDeviceCount")) return error;
  *count = static_cast<int>(Runtime::get().devices.size());
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (cudaError_t error = enter("cudaSetDevice")) return error;
  if (!valid_device(device)) return answer(cudaErrorInvalidDevice);
  set_current_device(device);
  return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  if (cudaError_t error = enter("cudaInitDevice")) return error;
  return valid_device(device) ? cudaSuccess : answer(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int* device) {
  if (cudaError_t error = enter("cudaGetDevice")) return error;
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (cudaError_t error = enter("cudaGetDeviceProperties")) return error;
  if (!valid_device(device)) return answer(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "Double GPU");
  std::memset(properties->uuid.bytes, 0xd0, sizeof properties->uuid.bytes);
  properties->uuid.bytes[15] = static_cast<char>(physical(device));
  properties->totalGlobalMem = Runtime::get().memory;
  properties->major = kMajor;
  properties->multiProcessorCount = kProcessors;
  properties->pciBusID = physical(device) + 1;
  properties->unifiedAddressing = 1;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  if (cudaError_t error = enter("cudaDeviceGetAttribute")) return error;
  if (!valid_device(device)) return answer(cudaErrorInvalidDevice);
  *value = attribute(which, device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (cudaError_t error = enter("cudaDeviceGetPCIBusId")) return error;
  if (!valid_device(device)) return answer(cudaErrorInvalidDevice);
  if (length < 13) return answer(cudaErrorInvalidValue);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0", physical(device) + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  if (cudaError_t error = enter("cudaDeviceGetByPCIBusId")) return error;
  char own[16];
  for (int i = 0; valid_device(i); ++i) {
    std::snprintf(own, sizeof own, "0000:%02X:00.0", physical(i) + 1);
    if (strcasecmp(own, text) == 0) return *device = i, cudaSuccess;
  }
  return answer(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (cudaError_t error = enter("cudaDeviceCanAccessPeer")) return error;
  if (!valid_device(device) || !valid_device(peer)) return answer(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (cudaError_t error = enter("cudaDeviceGetStreamPriorityRange")) return error;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (cudaError_t error = enter("cudaDeviceSynchronize")) return error;
  return answer(wait_for(current_device(), all_work(current_device())));
}

// A failed device stays failed, as the real one for this process.
cudaError_t cudaDeviceReset() {
  if (cudaError_t error = enter("cudaDeviceReset")) return error;
  return answer(wait_for(current_device(), all_work(current_device())));
}

cudaError_t cudaGetLastError() {
  return last_error(true);
}
cudaError_t cudaPeekAtLastError() {
  return last_error(false);
}

const char* cudaGetErrorName(cudaError_t error) {
  for (const ErrorText& entry : kErrorTexts) {
    if (entry.error == error) return entry.name;
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  for (const ErrorText& entry : kErrorTexts) {
    if (entry.error == error) return entry.text;
  }
  return "unrecognized error code";
}

}  // extern "C"
