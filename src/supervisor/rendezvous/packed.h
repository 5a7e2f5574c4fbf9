// SPDX-License-Identifier: Apache-2.0
// Only for codecs of what comes often: numbers are varints (7 bits a byte, low ones first), signed
// ones zigzag, what is no whole number is an IEEE double, a text has its length before it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "supervisor/rendezvous/frames.h"

namespace muster::packed {

inline constexpr double kMaxNumber = 1e300;

inline bool in(int64_t value, int64_t most) {
  return value >= 0 && value <= most;
}

// False for what is not a number, too.
inline bool in(double value, double low, double high) {
  return value >= low && value <= high;
}

inline void put(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7)
    out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

inline void put_signed(std::string& out, int64_t value) {
  put(out, (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}

inline void put_double(std::string& out, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  append_u64(out, bits);
}

inline void put_text(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
}

// After the first thing that is cut or out of range all are 0 or empty and bad() says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool bad() const { return bad_; }

  uint8_t byte() {
    if (bytes_.empty()) return fail();
    const auto value = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return value;
  }

  uint8_t byte_below(int limit) {
    const uint8_t value = byte();
    return value < limit ? value : fail();
  }

  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 63; shift += 7) {
      const uint8_t next = byte();
      value |= uint64_t{next & 127U} << shift;
      if (next < 128) return bad_ ? 0 : value;
    }
    return fail();
  }

  int64_t up_to(int64_t most) {
    const uint64_t value = number();
    return value <= static_cast<uint64_t>(most) ? static_cast<int64_t>(value) : fail();
  }

  // `base` and a distance from it, 0 to `most`.
  int64_t near(int64_t base, int64_t most) {
    const uint64_t raw = number();
    const auto distance = static_cast<int64_t>(raw >> 1) ^ -static_cast<int64_t>(raw & 1);
    const int64_t value = base + distance;  // both are below 2^62
    return value >= 0 && value <= most ? value : fail();
  }

  // From -most to most.
  int64_t around_zero(int64_t most) {
    const uint64_t raw = number();
    const auto value = static_cast<int64_t>(raw >> 1) ^ -static_cast<int64_t>(raw & 1);
    return value >= -most && value <= most ? value : fail();
  }

  double real(double low) {
    const uint64_t bits = u64();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return in(value, low, kMaxNumber) ? value : fail();
  }

  uint64_t u64() {
    if (bytes_.size() < sizeof(uint64_t)) return fail();
    const uint64_t value = read_u64(bytes_.data());
    bytes_.remove_prefix(sizeof value);
    return value;
  }

  std::string_view text(size_t most) {
    const auto size = static_cast<size_t>(up_to(static_cast<int64_t>(most)));
    if (size > bytes_.size()) fail();
    const std::string_view text = bytes_.substr(0, bad_ ? 0 : size);
    bytes_.remove_prefix(text.size());
    return text;
  }

  uint8_t fail() {
    bad_ = true;
    bytes_ = {};
    return 0;
  }

 private:
  std::string_view bytes_;
  bool bad_ = false;
};

}  // namespace muster::packed
