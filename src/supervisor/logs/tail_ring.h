// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace muster {

// The last bytes of a stream, for the report. Grows with what it holds, never past its limit.
class TailRing {
 public:
  static constexpr size_t kLimit = 64 * 1024;

  void append(std::string_view bytes);

  // The bytes in order.
  std::string text() const;
  // The last of them, `count` at most.
  std::string last(size_t count) const;
  bool empty() const { return ring_.empty(); }

 private:
  std::string ring_;
  size_t begin_ = 0;  // of the oldest byte, once the ring is full
};

}  // namespace muster
