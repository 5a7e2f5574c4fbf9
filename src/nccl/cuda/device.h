// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nccl/cuda/tables.h"

namespace muster::comm::detail {

// How many GPUs this process may use, at least one. kUnavailable: there is no driver, it is too
// old for the runtime, or it shows no GPU.
Result<int> visible_devices(const CudaTable& cuda);

// cuda_table(), with the missing driver named first where both it and the library are missing.
Result<const CudaTable*> cuda_with_driver();

// `wanted`, or (negative) the one of the local rank, or the only one: launchers that show each
// process a GPU of its own show it as number 0 (CUDA_VISIBLE_DEVICES).
Result<int> choose_device(int visible, int wanted, int local_rank);

// "0000:3b:00.0 GPU-5d3f...": what no other GPU of the world has. "" where it cannot be asked.
std::string device_identity(const CudaTable& cuda, int device);

// Makes a device this thread's as long as it lives.
class DeviceScope {
 public:
  DeviceScope(const CudaTable& cuda, int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  cudaError_t error() const { return error_; }

 private:
  const CudaTable& cuda_;
  int before_ = -1;  // nothing to go back to
  cudaError_t error_;
};

}  // namespace muster::comm::detail
