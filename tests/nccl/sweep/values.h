// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/data_type.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

// What each rank puts in, which every rank can say of every other, and what has to come out,
// calculated with more digits than any of the types has.
namespace muster::comm::test {

using Number = long double;

template <typename T>
constexpr bool is_whole = std::is_integral_v<T>;

template <typename T>
Number number(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<Number>(value);
  } else {
    return static_cast<Number>(value.to_float());
  }
}

template <typename T>
T element(double value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T::from(static_cast<float>(value));
  }
}

// Half the distance of two neighbours, relative to the number: what one rounding may cost.
template <typename T>
Number rounding() {
  if constexpr (is_whole<T>) return 0;
  if constexpr (std::is_same_v<T, Float16>) return 0x1p-11L;
  if constexpr (std::is_same_v<T, Bfloat16>) return 0x1p-8L;
  if constexpr (std::is_same_v<T, float>) return 0x1p-24L;
  return 0x1p-53L;
}

// Near 0 the distance does not get smaller any more.
template <typename T>
Number smallest() {
  return std::is_same_v<T, Float16> ? 0x1p-25L : 0;
}

inline uint64_t mixed(uint64_t rank, uint64_t index) {
  uint64_t x = (rank + 1) * 0x9e3779b97f4a7c15ULL + index * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 30) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

// Whole numbers are so small that five of them neither add nor multiply beyond any type.
template <typename T>
T value(int rank, size_t index, ReduceOp op) {
  const uint64_t random = mixed(static_cast<uint64_t>(rank), index);
  const bool product = op == ReduceOp::kProduct;
  if constexpr (is_whole<T>) {
    const int size = product ? static_cast<int>(random % 2) + 1 : static_cast<int>(random % 21);
    const bool negative = std::is_signed_v<T> && (random >> 32) % 2 == 1;
    return static_cast<T>(negative ? -size : size);
  } else {
    const double size = static_cast<double>(random >> 12) * 0x1p-52;  // 0 to 1
    const double positive = product ? size + 0.5 : size;
    return element<T>((random & 1) != 0 ? -positive : positive);
  }
}

template <typename T>
std::vector<T> values(int rank, size_t count, ReduceOp op = ReduceOp::kSum) {
  std::vector<T> result(count);
  for (size_t i = 0; i < count; ++i)
    result[i] = value<T>(rank, i, op);
  return result;
}

struct Expected {
  Number value = 0;
  Number bound = 0;  // how far from it a result may be
};

// `roundings`: how often a number is rounded on its way.
template <typename T>
Expected reduced(ReduceOp op, int ranks, size_t index, int roundings) {
  Number result = number(value<T>(0, index, op));
  Number sizes = std::fabs(result);
  for (int rank = 1; rank < ranks; ++rank) {
    const Number next = number(value<T>(rank, index, op));
    sizes += std::fabs(next);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAverage:
        result += next;
        break;
      case ReduceOp::kProduct:
        result *= next;
        break;
      case ReduceOp::kMin:
        result = std::fmin(result, next);
        break;
      case ReduceOp::kMax:
        result = std::fmax(result, next);
        break;
    }
  }
  if (op == ReduceOp::kMin || op == ReduceOp::kMax) return {result, 0};
  if (op == ReduceOp::kAverage) {
    result /= ranks;
    sizes /= ranks;
    if (is_whole<T>) result = std::trunc(result);
  }
  // One rounding leaves at most half a step of the result itself; each one before it half a step of
  // what was there then.
  const Number largest = op == ReduceOp::kProduct ? std::fabs(result) : sizes;
  const Number in_its_type = rounding<T>() * (std::fabs(result) + (roundings - 1) * largest);
  // What is rounded once was calculated in float32 until then, where little may be left of much.
  const Number in_float = sizeof(T) == 2 ? 0x1p-24L * ranks * largest : 0;
  return {result, in_its_type + in_float + smallest<T>()};
}

}  // namespace muster::comm::test
