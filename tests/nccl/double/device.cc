// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <cstdlib>
#include <sstream>
#include <string>

#include "faults.h"
#include "stream.h"

namespace doubles {
namespace {

thread_local int t_device = 0;
thread_local cudaError_t t_last_error = cudaSuccess;
thread_local bool t_in_host_function = false;

std::vector<int> visible_devices() {
  int count = static_cast<int>(env_number("DOUBLE_DEVICES", 8));
  std::vector<int> visible;
  if (const char* text = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
      int device = std::atoi(word.c_str());
      // As CUDA does: the first number that cannot be ends the list.
      if (word.empty() || device < 0 || device >= count) break;
      visible.push_back(device);
    }
    return visible;
  }
  for (int i = 0; i < count; ++i)
    visible.push_back(i);
  return visible;
}

Runtime* make_runtime() {
  auto* runtime = new Runtime;
  runtime->driver_version = static_cast<int>(env_number("DOUBLE_DRIVER_VERSION", CUDART_VERSION));
  runtime->memory = static_cast<size_t>(env_number("DOUBLE_DEVICE_MEMORY", 8L << 30));
  for (int physical : visible_devices()) {
    Device device;
    device.physical = physical;
    runtime->devices.push_back(std::move(device));
  }
  return runtime;
}

cudaError_t sticky_error() {
  Runtime& runtime = Runtime::get();
  std::lock_guard lock(runtime.mutex);
  return valid_device(t_device) ? runtime.devices[static_cast<size_t>(t_device)].sticky
                                : cudaSuccess;
}

}  // namespace

Runtime& Runtime::get() {
  static Runtime* runtime = make_runtime();
  return *runtime;
}

cudaError_t enter(const char* function) {
  if (t_in_host_function) return answer(cudaErrorNotPermitted);
  if (int code = fault(function); code != 0) return answer(static_cast<cudaError_t>(code));
  Runtime& runtime = Runtime::get();
  if (runtime.driver_too_old()) return answer(cudaErrorInsufficientDriver);
  if (runtime.devices.empty()) return answer(cudaErrorNoDevice);
  return answer(sticky_error());
}

cudaError_t answer(cudaError_t error) {
  // cudaErrorNotReady is no error that cudaGetLastError() would keep.
  if (error != cudaSuccess && error != cudaErrorNotReady) t_last_error = error;
  return error;
}

cudaError_t last_error(bool reset) {
  if (cudaError_t sticky = sticky_error(); sticky != cudaSuccess) return sticky;
  cudaError_t error = t_last_error;
  if (reset) t_last_error = cudaSuccess;
  return error;
}

int current_device() {
  return t_device;
}
void set_current_device(int device) {
  t_device = device;
}
bool valid_device(int device) {
  return device >= 0 && device < static_cast<int>(Runtime::get().devices.size());
}

void set_in_host_function(bool value) {
  t_in_host_function = value;
}

void poison(int device, cudaError_t error) {
  Runtime& runtime = Runtime::get();
  std::lock_guard lock(runtime.mutex);
  cudaError_t& sticky = runtime.devices[static_cast<size_t>(device)].sticky;
  if (sticky == cudaSuccess) sticky = error;
  runtime.changed.notify_all();
}

}  // namespace doubles
