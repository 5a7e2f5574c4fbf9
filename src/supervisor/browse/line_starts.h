// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "supervisor/browse/log_page.h"

namespace muster {

// Finds the start of the n-th line before some place, fed backwards from there. Pure.
class LineStarts {
 public:
  struct Limits {
    int64_t max_lines = 1;
    int64_t max_bytes = 0;  // of text, a line counting with at most max_line; one always fits
    int64_t max_line = 0;
  };
  // Looks for line starts before `end`.
  LineStarts(int64_t end, Limits limits) : limits_(limits), position_(end), start_(end) {}

  // The bytes that end at position(). False when the start is found.
  bool feed_before(std::string_view bytes);
  // The part begins at position(), where a line starts in any case. False as above.
  bool at_begin();
  // Goes on with the lines before `offset`.
  void jump(int64_t offset);

  int64_t position() const { return position_; }
  // Of the earliest line that was found and fits; the end itself if none was.
  int64_t start() const { return start_; }
  bool found() const { return found_; }

 private:
  bool take(int64_t line_start);
  // Of the line whose start is looked for.
  int64_t line_end() const { return line_end_ >= 0 ? line_end_ : start_; }

  Limits limits_;
  int64_t position_;
  int64_t start_;
  int64_t line_end_ = -1;  // if it is not start_: the hole is between
  int64_t lines_ = 0;
  int64_t bytes_ = 0;
  bool found_ = false;
};

}  // namespace muster
