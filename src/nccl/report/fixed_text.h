// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace muster::comm::detail {

// Text in memory of somebody else's, for signal handlers: no allocation, no locale. What does not
// fit is left out.
class FixedText {
 public:
  constexpr explicit FixedText(std::span<char> memory) : memory_(memory) {}

  void add(std::string_view text) {
    const size_t count = text.size() < room() ? text.size() : room();
    if (count > 0) std::memcpy(memory_.data() + used_, text.data(), count);
    used_ += count;
  }
  void add_number(uint64_t value, unsigned base = 10) {
    char digits[64];
    size_t first = sizeof(digits);
    do {
      digits[--first] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value > 0);
    add({digits + first, sizeof(digits) - first});
  }
  void add_address(uint64_t value) {
    add("0x");
    add_number(value, 16);
  }

  std::string_view text() const { return {memory_.data(), used_}; }
  size_t room() const { return memory_.size() - used_; }

 private:
  std::span<char> memory_;
  size_t used_ = 0;
};

}  // namespace muster::comm::detail
