// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "supervisor/logs/times_format.h"

namespace muster {

// Where a stream's bytes lie in its log file: a plain file in one part; of a bounded one the head
// and what is behind the marker, which is two parts while a cut is going on (or was when its muster
// was killed): moved and not yet moved. Pure.
class LogLayout {
 public:
  // Bytes that lie together.
  struct Part {
    int64_t offset = 0;  // in the stream
    int64_t place = 0;   // in the file
    int64_t size = 0;
  };

  LogLayout() = default;
  LogLayout(const LogCut& cut, int64_t file_size);

  // Of the stream: the bytes written so far, with those that are left out.
  int64_t size() const { return size_; }
  // [hole_begin, hole_end) is left out; both 0 if nothing is.
  int64_t hole_begin() const { return hole_begin_; }
  int64_t hole_end() const { return hole_end_; }
  bool in_hole(int64_t offset) const { return hole_begin_ <= offset && offset < hole_end_; }

  // What lies together from `offset` on, or from behind the hole if it is in there; nothing at the
  // end of the stream.
  std::optional<Part> at(int64_t offset) const;

 private:
  void add(int64_t offset, int64_t place, int64_t size);

  std::array<Part, 3> parts_;
  size_t count_ = 0;
  int64_t size_ = 0;
  int64_t hole_begin_ = 0;
  int64_t hole_end_ = 0;
};

}  // namespace muster
