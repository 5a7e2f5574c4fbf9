// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/data_type.h>

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>

namespace muster::comm {

// Whose memory it is: the processor's, or a CUDA device's.
enum class Memory : uint8_t { kHost, kDevice };

// A CUDA stream (cudaStream_t) without CUDA's headers; null is the default stream.
using Stream = void*;

// Elements to read: where they are, how many, of which type. It owns nothing: the memory must stay
// as it is until the operation is done (Work).
//
// Host memory comes from anything contiguous: a span, a vector, an array. Device memory is given by
// device(), with the stream on which the operation takes its turn: it begins when what was put on
// that stream before has ended, and what is put there afterwards begins when the operation has.
struct ConstBuffer {
  const void* data = nullptr;
  size_t count = 0;  // elements, not bytes
  DataType type = DataType::kUint8;
  Memory memory = Memory::kHost;
  Stream stream = nullptr;  // device memory only

  ConstBuffer() = default;
  ConstBuffer(const void* host, size_t elements, DataType element)
      : data(host), count(elements), type(element) {}
  template <std::ranges::contiguous_range R>
  requires Element<std::ranges::range_value_t<R>> ConstBuffer(const R& range)
      : data(std::ranges::data(range)),
        count(std::ranges::size(range)),
        type(data_type_of<std::ranges::range_value_t<R>>) {}

  // Device memory: elements, not bytes, and the stream on which the operation takes its turn.
  static ConstBuffer device(const void* data, size_t count, DataType type, Stream stream) {
    ConstBuffer buffer(data, count, type);
    buffer.memory = Memory::kDevice;
    buffer.stream = stream;
    return buffer;
  }
  size_t bytes() const { return count * size_of(type); }
};

// Elements to write, else as ConstBuffer.
struct Buffer {
  void* data = nullptr;
  size_t count = 0;
  DataType type = DataType::kUint8;
  Memory memory = Memory::kHost;
  Stream stream = nullptr;

  Buffer() = default;
  Buffer(void* host, size_t elements, DataType element)
      : data(host), count(elements), type(element) {}
  // A Buffer is no range, so this hides neither the copy nor the move.
  template <std::ranges::contiguous_range R>
  requires Element<std::ranges::range_value_t<R>> &&
      (!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>)
          Buffer(R&& range)  // NOLINT(bugprone-forwarding-reference-overload)
      : data(std::ranges::data(range)),
        count(std::ranges::size(range)),
        type(data_type_of<std::ranges::range_value_t<R>>) {}

  // Device memory, as ConstBuffer::device().
  static Buffer device(void* data, size_t count, DataType type, Stream stream) {
    Buffer buffer(data, count, type);
    buffer.memory = Memory::kDevice;
    buffer.stream = stream;
    return buffer;
  }
  operator ConstBuffer() const {
    ConstBuffer buffer(data, count, type);
    buffer.memory = memory;
    buffer.stream = stream;
    return buffer;
  }
  size_t bytes() const { return count * size_of(type); }
  // `elements` of them from `first` on.
  Buffer part(size_t first, size_t elements) const {
    Buffer slice = *this;
    slice.data = static_cast<std::byte*>(data) + first * size_of(type);
    slice.count = elements;
    return slice;
  }
};

}  // namespace muster::comm
