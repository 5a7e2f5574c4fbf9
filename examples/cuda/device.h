// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <muster/comm/buffer.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

inline void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

// A stream and an event on it, gone with it.
class DeviceStream {
 public:
  DeviceStream() {
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaEventCreate(&event_), "cudaEventCreate");
  }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream() {
    cudaEventDestroy(event_);
    cudaStreamDestroy(stream_);
  }
  operator cudaStream_t() const { return stream_; }
  void wait() const { must(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  // What comes here from now on begins when what is on `other` now has ended.
  void wait_for(const DeviceStream& other) const {
    must(cudaEventRecord(other.event_, other), "cudaEventRecord");
    must(cudaStreamWaitEvent(stream_, other.event_, 0), "cudaStreamWaitEvent");
  }
  // The time now on the stream.
  void mark() const { must(cudaEventRecord(event_, stream_), "cudaEventRecord"); }
  float milliseconds_since(const DeviceStream& first) const {
    float time = 0;
    must(cudaEventSynchronize(event_), "cudaEventSynchronize");
    must(cudaEventElapsedTime(&time, first.event_, event_), "cudaEventElapsedTime");
    return time;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

// Elements in the device's memory.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    must(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMalloc");
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) {
    must(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice),
         "cudaMemcpy");
  }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  DeviceArray& operator=(DeviceArray&&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return data_; }
  size_t size() const { return count_; }
  muster::comm::Buffer buffer(cudaStream_t stream) const {
    return muster::comm::Buffer::device(data_, count_, muster::comm::data_type_of<T>, stream);
  }
  // When the stream has come so far.
  std::vector<T> values(cudaStream_t stream) const {
    std::vector<T> values(count_);
    must(cudaMemcpyAsync(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost, stream),
         "cudaMemcpyAsync");
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

// Chooses the device that the communicator of this local rank takes.
inline void use_device_of(int local_rank) {
  int count = 0;
  must(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  must(cudaSetDevice(count == 1 ? 0 : local_rank), "cudaSetDevice");
}
