// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/buffer.h>
#include <muster/comm/communicator.h>

#include <cstddef>
#include <span>
#include <vector>

namespace muster::comm::test {

// Elements where a backend wants them, so that one test runs on both: host memory for Gloo, device
// memory for NCCL. The CUDA runtime is opened as the library itself does it (MUSTER_CUDART_LIBRARY,
// else libcudart), so the test links none. What cannot be had ends the program with a message.
class TestBuffer {
 public:
  TestBuffer(Backend backend, size_t count, DataType type);
  TestBuffer(TestBuffer&& other) noexcept;
  TestBuffer& operator=(TestBuffer&&) = delete;
  ~TestBuffer();

  // For an operation; `stream` matters for device memory only.
  Buffer buffer(Stream stream = nullptr);
  operator Buffer() { return buffer(); }
  operator ConstBuffer() { return buffer(); }

  // Both wait for the device.
  void upload(std::span<const std::byte> bytes);
  std::vector<std::byte> download() const;

  template <Element T>
  void fill(T value) {
    const std::vector<T> values(count_, value);
    upload(std::as_bytes(std::span(values)));
  }
  template <Element T>
  std::vector<T> values() const {
    const std::vector<std::byte> bytes = download();
    const T* first = reinterpret_cast<const T*>(bytes.data());
    return std::vector<T>(first, first + count_);
  }

 private:
  Backend backend_;
  size_t count_;
  DataType type_;
  void* data_ = nullptr;
};

// Chooses the device that the calling thread works on; nothing for Gloo.
void use_device(Backend backend, int device);
Stream make_stream(Backend backend);
void free_stream(Backend backend, Stream stream);

}  // namespace muster::comm::test
