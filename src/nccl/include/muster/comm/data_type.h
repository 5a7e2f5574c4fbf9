// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace muster::comm {

// The element types that both backends know. The numbers are part of what the launcher reads in a
// worker's page: never change them.
enum class DataType : uint8_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};
constexpr int kDataTypes = 10;

// The bits of a number in IEEE half precision / in bfloat16: storage only, to be handed to an
// operation. Conversions round to nearest, ties to even; a value out of range becomes infinite.
struct Float16 {
  uint16_t bits = 0;
  static Float16 from(float value);
  float to_float() const;
};
struct Bfloat16 {
  uint16_t bits = 0;
  static Bfloat16 from(float value);
  float to_float() const;
};

// Bytes of one element.
constexpr size_t size_of(DataType type) {
  constexpr size_t sizes[kDataTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[static_cast<size_t>(type)];
}

// "float32", "int64", ...: PyTorch's names.
const char* to_string(DataType type);

// How the values of the ranks become one. kAverage is the sum divided by the number of ranks; of
// whole numbers it is rounded towards zero.
enum class ReduceOp : uint8_t { kSum = 0, kProduct = 1, kMin = 2, kMax = 3, kAverage = 4 };

// "sum", "product", "min", "max", "average".
const char* to_string(ReduceOp op);

namespace detail {
template <typename T>
constexpr DataType data_type_of() {
  if constexpr (std::is_same_v<T, Float16>) return DataType::kFloat16;
  if constexpr (std::is_same_v<T, Bfloat16>) return DataType::kBfloat16;
  if constexpr (std::is_same_v<T, float>) return DataType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DataType::kFloat64;
  if constexpr (std::is_same_v<T, std::byte>) return DataType::kUint8;
  if constexpr (std::is_integral_v<T>) {
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? DataType::kInt8 : DataType::kUint8;
    if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? DataType::kInt32 : DataType::kUint32;
    if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? DataType::kInt64 : DataType::kUint64;
  }
}

template <typename T>
constexpr bool is_element = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16> ||
                            std::is_same_v<T, float> || std::is_same_v<T, double> ||
                            std::is_same_v<T, std::byte> ||
                            (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) != 2);
}  // namespace detail

// A C++ type whose values an operation can carry.
template <typename T>
concept Element = detail::is_element<std::remove_cv_t<T>>;

// The DataType of a C++ type: data_type_of<float> is kFloat32.
template <Element T>
constexpr DataType data_type_of = detail::data_type_of<std::remove_cv_t<T>>();

}  // namespace muster::comm
