// SPDX-License-Identifier: Apache-2.0
#include "reduce.h"

#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace doubles {
namespace {

// Calls `body` with a value of the type.
template <typename F>
void with_type(ncclDataType_t type, F body) {
  switch (type) {
    case ncclInt8:
      return body(int8_t{});
    case ncclUint8:
      return body(uint8_t{});
    case ncclInt32:
      return body(int32_t{});
    case ncclUint32:
      return body(uint32_t{});
    case ncclInt64:
      return body(int64_t{});
    case ncclUint64:
      return body(uint64_t{});
    case ncclFloat16:
      return body(__half{});
    case ncclFloat32:
      return body(float{});
    case ncclFloat64:
      return body(double{});
    case ncclBfloat16:
      return body(__nv_bfloat16{});
    case ncclFloat8e4m3:
      return body(__nv_fp8_e4m3{});
    case ncclFloat8e5m2:
      return body(__nv_fp8_e5m2{});
    default:
      return;
  }
}

template <typename T>
T load(const void* from, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(void* to, size_t index, T value) {
  std::memcpy(static_cast<std::byte*>(to) + index * sizeof(T), &value, sizeof(T));
}

// What one computes in: whole numbers wrap around, small floats are rounded after each step.
template <typename T>
auto wide(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return static_cast<float>(value);
  }
}

template <typename T>
T combine(ncclRedOp_t op, T a, T b) {
  // Compared as they are, since a sign is lost in wide().
  if constexpr (std::is_integral_v<T>) {
    if (op == ncclMin) return a < b ? a : b;
    if (op == ncclMax) return a < b ? b : a;
  } else {
    if (op == ncclMin) return wide(a) < wide(b) ? a : b;
    if (op == ncclMax) return wide(a) < wide(b) ? b : a;
  }
  if (op == ncclProd) return static_cast<T>(wide(a) * wide(b));
  return static_cast<T>(wide(a) + wide(b));
}

template <typename T>
T multiplied(T value, const Reduction& reduction, int ranks) {
  if (reduction.multiply_first) {
    const void* from = reduction.device_scalar ? reduction.device_scalar : reduction.scalar.data();
    return static_cast<T>(wide(value) * wide(load<T>(from, 0)));
  }
  // As NCCL: the average of floats is a sum of what was divided first.
  if constexpr (!std::is_integral_v<T>) {
    if (reduction.op == ncclAvg) return static_cast<T>(wide(value) / static_cast<float>(ranks));
  }
  return value;
}

}  // namespace

size_t size_of_type(ncclDataType_t type) {
  size_t size = 0;
  with_type(type, [&](auto value) { size = sizeof value; });
  return size;
}

std::vector<std::byte> contribution(const Reduction& reduction, ncclDataType_t type, int ranks,
                                    const void* in, size_t count) {
  std::vector<std::byte> out(count * size_of_type(type));
  with_type(type, [&](auto value) {
    using T = decltype(value);
    for (size_t i = 0; i < count; ++i) {
      store(out.data(), i, multiplied(load<T>(in, i), reduction, ranks));
    }
  });
  return out;
}

void reduce(const Reduction& reduction, ncclDataType_t type,
            const std::vector<const std::byte*>& inputs, std::byte* out, size_t count) {
  with_type(type, [&](auto value) {
    using T = decltype(value);
    for (size_t i = 0; i < count; ++i) {
      T sum = load<T>(inputs.front(), i);
      for (size_t r = 1; r < inputs.size(); ++r) {
        sum = combine(reduction.op, sum, load<T>(inputs[r], i));
      }
      if constexpr (std::is_integral_v<T>) {
        if (reduction.op == ncclAvg) sum = static_cast<T>(sum / static_cast<T>(inputs.size()));
      }
      store(out, i, sum);
    }
  });
}

}  // namespace doubles
