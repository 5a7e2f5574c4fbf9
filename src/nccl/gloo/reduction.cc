// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/reduction.h"

#include <cstdint>
#include <type_traits>

#include "nccl/core/float_bits.h"

namespace muster::comm::detail {
namespace {

// Whole numbers are calculated without a sign and at least as wide as int, where to wrap around is
// defined.
template <typename T>
struct Calculation {
  using type = T;
};
template <typename T>
requires std::is_integral_v<T>
struct Calculation<T> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    using Wide = typename Calculation<T>::type;
    return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  }
};
struct Product {
  template <typename T>
  static T apply(T a, T b) {
    using Wide = typename Calculation<T>::type;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  }
};
struct Min {
  template <typename T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};

template <typename T, typename Op>
void reduce(void* out, const void* a, const void* b, size_t count) {
  auto* to = static_cast<T*>(out);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  for (size_t i = 0; i < count; ++i) {
    to[i] = Op::apply(left[i], right[i]);
  }
}

// Only min and max, which round nothing.
template <float (*ToFloat)(uint16_t), typename Op>
void pick(void* out, const void* a, const void* b, size_t count) {
  auto* to = static_cast<uint16_t*>(out);
  const auto* left = static_cast<const uint16_t*>(a);
  const auto* right = static_cast<const uint16_t*>(b);
  for (size_t i = 0; i < count; ++i) {
    const float first = ToFloat(left[i]);
    to[i] = Op::apply(first, ToFloat(right[i])) == first ? left[i] : right[i];
  }
}

template <typename T>
ReduceFunction of_type(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return reduce<T, Sum>;
    case ReduceOp::kProduct:
      return reduce<T, Product>;
    case ReduceOp::kMin:
      return reduce<T, Min>;
    case ReduceOp::kMax:
      return reduce<T, Max>;
  }
  return nullptr;
}

template <float (*ToFloat)(uint16_t)>
ReduceFunction of_16_bits(ReduceOp op) {
  if (op == ReduceOp::kMin) return pick<ToFloat, Min>;
  return op == ReduceOp::kMax ? pick<ToFloat, Max> : nullptr;
}

template <typename T>
using By = std::conditional_t<std::is_integral_v<T>,
                              std::conditional_t<std::is_unsigned_v<T>, uint32_t, int32_t>, T>;

template <typename T>
void divide_each(void* data, size_t count, int divisor) {
  auto* numbers = static_cast<T*>(data);
  // Not as a T, which may have no room for it.
  for (size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<T>(numbers[i] / static_cast<By<T>>(divisor));
}

template <float (*ToFloat)(uint16_t)>
void widen_each(float* out, const void* in, size_t count) {
  const auto* from = static_cast<const uint16_t*>(in);
  for (size_t i = 0; i < count; ++i)
    out[i] = ToFloat(from[i]);
}

template <float (*ToFloat)(uint16_t)>
void accumulate_each(float* sum, const void* in, size_t count, bool product) {
  const auto* from = static_cast<const uint16_t*>(in);
  if (product) {
    for (size_t i = 0; i < count; ++i)
      sum[i] *= ToFloat(from[i]);
  } else {
    for (size_t i = 0; i < count; ++i)
      sum[i] += ToFloat(from[i]);
  }
}

template <uint16_t (*FromFloat)(float)>
void narrow_each(void* out, const float* sum, size_t count, float divisor) {
  auto* to = static_cast<uint16_t*>(out);
  for (size_t i = 0; i < count; ++i)
    to[i] = FromFloat(sum[i] / divisor);
}

}  // namespace

ReduceFunction reduce_function(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kInt8:
      return of_type<int8_t>(op);
    case DataType::kUint8:
      return of_type<uint8_t>(op);
    case DataType::kInt32:
      return of_type<int32_t>(op);
    case DataType::kUint32:
      return of_type<uint32_t>(op);
    case DataType::kInt64:
      return of_type<int64_t>(op);
    case DataType::kUint64:
      return of_type<uint64_t>(op);
    case DataType::kFloat16:
      return of_16_bits<half_to_float>(op);
    case DataType::kFloat32:
      return of_type<float>(op);
    case DataType::kFloat64:
      return of_type<double>(op);
    case DataType::kBfloat16:
      return of_16_bits<bfloat_to_float>(op);
  }
  return nullptr;
}

void divide(void* data, size_t count, DataType type, int divisor) {
  switch (type) {
    case DataType::kInt8:
      return divide_each<int8_t>(data, count, divisor);
    case DataType::kUint8:
      return divide_each<uint8_t>(data, count, divisor);
    case DataType::kInt32:
      return divide_each<int32_t>(data, count, divisor);
    case DataType::kUint32:
      return divide_each<uint32_t>(data, count, divisor);
    case DataType::kInt64:
      return divide_each<int64_t>(data, count, divisor);
    case DataType::kUint64:
      return divide_each<uint64_t>(data, count, divisor);
    case DataType::kFloat32:
      return divide_each<float>(data, count, divisor);
    case DataType::kFloat64:
      return divide_each<double>(data, count, divisor);
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return;  // narrow() does it
  }
}

bool needs_float(DataType type, ReduceOp op) {
  return (type == DataType::kFloat16 || type == DataType::kBfloat16) && op != ReduceOp::kMin &&
         op != ReduceOp::kMax;
}

void widen(float* out, const void* in, size_t count, DataType type) {
  if (type == DataType::kFloat16) return widen_each<half_to_float>(out, in, count);
  widen_each<bfloat_to_float>(out, in, count);
}

void accumulate(float* sum, const void* in, size_t count, DataType type, ReduceOp op) {
  const bool product = op == ReduceOp::kProduct;
  if (type == DataType::kFloat16) return accumulate_each<half_to_float>(sum, in, count, product);
  accumulate_each<bfloat_to_float>(sum, in, count, product);
}

void narrow(void* out, const float* sum, size_t count, DataType type, ReduceOp op, int ranks) {
  const float divisor = op == ReduceOp::kAverage ? static_cast<float>(ranks) : 1.0F;
  if (type == DataType::kFloat16) return narrow_each<half_from_float>(out, sum, count, divisor);
  narrow_each<bfloat_from_float>(out, sum, count, divisor);
}

}  // namespace muster::comm::detail
