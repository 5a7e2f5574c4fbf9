// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/device.h"

#include <dlfcn.h>

#include <cstdio>

#include "nccl/core/backend.h"
#include "nccl/cuda/trouble.h"

namespace muster::comm::detail {
namespace {

// Where cudaDeviceProp has the uuid, behind the name, in the runtimes of all versions; its size
// grows with them.
constexpr size_t kUuidAt = 256;
constexpr size_t kPropertiesSize = 8192;
static_assert(offsetof(cudaDeviceProp, uuid) == kUuidAt);
static_assert(sizeof(cudaDeviceProp) <= kPropertiesSize);

Error unavailable(std::string message) {
  return Error{.code = ErrorCode::kUnavailable, .message = std::move(message)};
}

Error no_driver() {
  return unavailable(
      "cuda: this machine has no NVIDIA driver (libcuda.so.1), so there is no GPU for NCCL to use; "
      "install it, start the container with --gpus, or use Backend::kGloo");
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

Result<const CudaTable*> cuda_with_driver() {
  Result<const CudaTable*> cuda = cuda_table();
  if (cuda) return cuda;
  // Only asked whether it is there; the runtime opens it itself.
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return no_driver();
  dlclose(driver);
  return cuda;
}

Result<int> visible_devices(const CudaTable& cuda) {
  int driver = 0;
  cuda.DriverGetVersion(&driver);
  if (driver == 0) return no_driver();
  int runtime = 0;
  cuda.RuntimeGetVersion(&runtime);
  int count = 0;
  const cudaError_t error = cuda.GetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    return unavailable("cuda: the NVIDIA driver is too old: it knows CUDA " +
                       cuda_version_text(driver) + ", and " + cuda.path + " is CUDA " +
                       cuda_version_text(runtime) +
                       "; install a newer driver or an older CUDA runtime");
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    return unavailable(
        "cuda: the NVIDIA driver shows no GPU to this process; see CUDA_VISIBLE_DEVICES and "
        "nvidia-smi, in a container --gpus");
  }
  if (error != cudaSuccess) return cuda_error(error, "cuda: cudaGetDeviceCount");
  return count;
}

Result<int> choose_device(int visible, int wanted, int local_rank) {
  const std::string only = "but only " + std::to_string(visible) +
                           (visible == 1 ? " GPU is visible" : " GPUs are visible");
  const auto invalid = [](std::string message) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
  };
  if (wanted >= visible) {
    return invalid("cuda: device " + std::to_string(wanted) + " is asked for, " + only);
  }
  if (wanted >= 0) return wanted;
  if (visible == 1) return 0;
  if (local_rank >= visible) {
    return invalid("cuda: local rank " + std::to_string(local_rank) + " " + only +
                   "; start fewer processes on this node, or say which with options.device");
  }
  return local_rank;
}

std::string device_identity(const CudaTable& cuda, int device) {
  char bus[64] = {};
  if (cuda.DeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess) return {};
  std::string identity = bus;
  alignas(std::max_align_t) unsigned char properties[kPropertiesSize] = {};
  if (cuda.GetDeviceProperties == nullptr ||
      cuda.GetDeviceProperties(properties, device) != cudaSuccess) {
    return identity;
  }
  identity += " GPU-";
  for (size_t i = 0; i < sizeof(cudaUUID_t); ++i) {
    char hex[3] = {};
    std::snprintf(hex, sizeof hex, "%02x", properties[kUuidAt + i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) identity += '-';
    identity += hex;
  }
  return identity;
}

std::string nccl_device_identity(int device) {
  const Result<const CudaTable*> cuda = cuda_table();
  if (!cuda) return {};
  const Result<int> visible = visible_devices(**cuda);
  if (!visible) return {};
  const Result<int> chosen = choose_device(*visible, -1, device);
  return chosen ? device_identity(**cuda, *chosen) : std::string();
}

DeviceScope::DeviceScope(const CudaTable& cuda, int device) : cuda_(cuda) {
  int current = -1;
  error_ = cuda.GetDevice(&current);
  if (error_ != cudaSuccess || current == device) return;
  error_ = cuda.SetDevice(device);
  if (error_ == cudaSuccess) before_ = current;
}

DeviceScope::~DeviceScope() {
  if (before_ >= 0) cuda_.SetDevice(before_);
}

}  // namespace muster::comm::detail
