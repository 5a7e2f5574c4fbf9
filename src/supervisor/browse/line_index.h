// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace muster {

// Which line begins where in a part of a stream that lies together, sparsely: some line starts with
// their numbers, between which a reader counts. Fed the bytes from the part's begin on, and fed on
// as it grows. Bounded: when it has kMaxPoints, every second one goes and the others stand for
// twice as much. Pure.
//
// Behind the hole of a bounded log nobody knows at first how many lines came before; they are
// counted from there, and have numbers as soon as settle() is told the number at some place.
class LineIndex {
 public:
  static constexpr size_t kMaxPoints = 4096;
  static constexpr int64_t kSpacing = 64 * 1024;

  // A line start.
  struct Point {
    int64_t offset = 0;
    int64_t number = 0;  // -1: unknown
  };

  // The stream's own beginning.
  LineIndex() : LineIndex(0) { settled_ = true; }
  // A part that begins at `begin`; its lines have no numbers yet.
  explicit LineIndex(int64_t begin);

  int64_t counted_to() const { return counted_to_; }
  // The bytes from there on.
  void feed(std::string_view bytes);
  // There are so many newlines before counted_to() in the stream.
  void settle(int64_t lines);
  bool settled() const { return settled_; }
  // Newlines before counted_to(), -1 if unknown.
  int64_t lines() const { return settled_ ? lines_ : -1; }

  // What was behind `end` is not in this part any more.
  void cut_off(int64_t end);

  // The last known line start at or before `offset`; nothing if that was not counted.
  std::optional<Point> before_offset(int64_t offset) const;
  // The last known line start of a line up to `number`; nothing if there are no numbers, or the
  // part's first line has a higher one.
  std::optional<Point> before_line(int64_t number) const;

 private:
  std::vector<Point> points_;
  int64_t spacing_ = kSpacing;
  int64_t counted_to_;
  int64_t lines_ = 0;
  bool settled_ = false;
};

}  // namespace muster
