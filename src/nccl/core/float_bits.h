// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

// The bits of IEEE half precision and of bfloat16 from and to float. Here, apart from the types of
// the interface, for loops over many of them. All rounding is to nearest, ties to even.
namespace muster::comm::detail {

inline float half_to_float(uint16_t bits) {
  // The exponent's 5 bits at the place of a float's 8, the difference of the two biases made good
  // by a multiplication, which is exact and also right for denormal numbers.
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  constexpr auto kBias = std::bit_cast<float>((127U + 112U) << 23);
  auto value = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * kBias);
  if ((bits & 0x7c00) == 0x7c00) value = magnitude | 0x7f800000;
  return std::bit_cast<float>(value | static_cast<uint32_t>(bits & 0x8000) << 16);
}

inline uint16_t half_from_float(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t half = 0;
  if (magnitude > 0x7f800000) {
    half = 0x7e00;  // not a number
  } else if (magnitude >= 0x47800000) {
    half = 0x7c00;  // 65536 and more
  } else if (magnitude < 0x38800000) {
    // Denormal: at 0.5 a float's last bit is worth as much as a half's least number.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - (126U << 23);
  } else {
    const uint32_t odd = magnitude >> 13 & 1;
    half = (magnitude - (112U << 23) + 0xfff + odd) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

inline float bfloat_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t bfloat_from_float(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace muster::comm::detail
