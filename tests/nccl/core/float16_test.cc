// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <muster/comm/data_type.h>

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace muster::comm {
namespace {

struct Format {
  int exponent_bits;
  int fraction_bits;
};
constexpr Format kHalf{5, 10};
constexpr Format kBrain{8, 7};

// What the bits mean by the standard's definition.
double meaning(uint16_t bits, const Format& format) {
  const int exponent = (bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << format.exponent_bits) - 1)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  const double part = std::ldexp(fraction, -format.fraction_bits);
  if (exponent == 0) return sign * std::ldexp(part, 1 - bias);
  return sign * std::ldexp(1 + part, exponent - bias);
}

// Same number, NaN being one, and zeros with the same sign.
bool same(double one, double other) {
  if (std::isnan(one) || std::isnan(other)) return std::isnan(one) && std::isnan(other);
  return one == other && std::signbit(one) == std::signbit(other);
}

template <typename Number>
int wrong_there_and_back(const Format& format) {
  int wrong = 0;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const Number number{static_cast<uint16_t>(bits)};
    const float value = number.to_float();
    const Number back = Number::from(value);
    if (!same(value, meaning(number.bits, format))) ++wrong;
    if (std::isnan(value) ? !std::isnan(back.to_float()) : back.bits != number.bits) ++wrong;
  }
  return wrong;
}

// Between each two neighbours of the format: just below, at and just above the middle, where
// rounding turns; and next to them.
template <typename Number>
int wrong_roundings(const Format& format) {
  const auto infinity =
      static_cast<uint16_t>(((1 << format.exponent_bits) - 1) << format.fraction_bits);
  int wrong = 0;
  for (uint16_t bits = 0; bits < infinity; ++bits) {
    const double low = meaning(bits, format);
    // The largest finite number's upper neighbour is where infinity would be.
    const double step = bits + 1 == infinity
                            ? low - meaning(static_cast<uint16_t>(bits - 1), format)
                            : meaning(static_cast<uint16_t>(bits + 1), format) - low;
    const auto middle = static_cast<float>(low + step / 2);
    if (static_cast<double>(middle) != low + step / 2) continue;  // no float lies between them
    const auto up = static_cast<uint16_t>(bits + 1);
    const uint16_t even = (bits & 1) == 0 ? bits : up;
    const auto expect = [&](float value, uint16_t want) {
      if (Number::from(value).bits != want) ++wrong;
      if (Number::from(-value).bits != (want | 0x8000)) ++wrong;
    };
    expect(middle, even);
    expect(std::nextafterf(middle, 0), bits);
    expect(std::nextafterf(middle, std::numeric_limits<float>::infinity()), up);
    expect(std::nextafterf(static_cast<float>(low), std::numeric_limits<float>::infinity()), bits);
  }
  return wrong;
}

}  // namespace

TEST_CASE("float16: each of its numbers means what it should and comes back the same") {
  CHECK(wrong_there_and_back<Float16>(kHalf) == 0);
}

TEST_CASE("bfloat16: each of its numbers means what it should and comes back the same") {
  CHECK(wrong_there_and_back<Bfloat16>(kBrain) == 0);
}

TEST_CASE("float16: between each two neighbours it rounds to nearest, ties to even") {
  CHECK(wrong_roundings<Float16>(kHalf) == 0);
}

TEST_CASE("bfloat16: between each two neighbours it rounds to nearest, ties to even") {
  CHECK(wrong_roundings<Bfloat16>(kBrain) == 0);
}

TEST_CASE("float16: what is out of range is infinite, what is too small is zero, NaN stays NaN") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(Float16::from(65504).bits == 0x7bff);
  CHECK(Float16::from(65519.996F).bits == 0x7bff);
  CHECK(Float16::from(65520).bits == 0x7c00);
  CHECK(Float16::from(1e38F).bits == 0x7c00);
  CHECK(Float16::from(-infinity).bits == 0xfc00);
  CHECK(Float16::from(std::ldexp(1.0F, -25)).bits == 0);
  CHECK(Float16::from(-std::numeric_limits<float>::denorm_min()).bits == 0x8000);
  CHECK(Bfloat16::from(std::numeric_limits<float>::max()).bits == 0x7f80);
  for (const uint32_t bits : {0x7f800001U, 0x7fc00000U, 0xff812345U, 0x7fffffffU}) {
    CHECK(std::isnan(Float16::from(std::bit_cast<float>(bits)).to_float()));
    CHECK(std::isnan(Bfloat16::from(std::bit_cast<float>(bits)).to_float()));
  }
}

}  // namespace muster::comm
