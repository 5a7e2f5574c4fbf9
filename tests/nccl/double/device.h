// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace doubles {

class Stream;

// One pretended GPU.
struct Device {
  int physical = 0;  // its number on the machine, before CUDA_VISIBLE_DEVICES
  cudaError_t sticky = cudaSuccess;
  size_t used = 0;                      // bytes
  std::shared_ptr<Stream> null_stream;  // the legacy default stream
  std::set<std::shared_ptr<Stream>> streams;
};

// All that the process knows of its devices. One mutex and one condition for everything: it is a
// test double, simple before fast. Never freed, since the streams' threads outlive main().
//
// Environment: DOUBLE_DEVICES (8), CUDA_VISIBLE_DEVICES (numbers), DOUBLE_DRIVER_VERSION
// (13000; 0: there is no driver), DOUBLE_DEVICE_MEMORY (bytes, 8 GiB each).
struct Runtime {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Device> devices;
  int driver_version = 0;
  size_t memory = 0;

  static Runtime& get();
  bool driver_too_old() const { return driver_version < CUDART_VERSION / 1000 * 1000; }
};

// What each API function does first: faults, no driver, a device that has failed, a call from
// within a host function. Gives what the function must answer, noted as the thread's last error.
cudaError_t enter(const char* function);
// Notes `error` as the thread's last one and gives it.
cudaError_t answer(cudaError_t error);
// The thread's last error; a device's error stays.
cudaError_t last_error(bool reset);

int current_device();
void set_current_device(int device);
bool valid_device(int device);

// Set while a thread runs a host function of the user's, which may not call CUDA.
void set_in_host_function(bool value);

// Something went wrong on the device: each call answers this from now on, as with the real one.
void poison(int device, cudaError_t error);

}  // namespace doubles
