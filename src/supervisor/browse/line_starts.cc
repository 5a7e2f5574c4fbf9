// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/line_starts.h"

#include <algorithm>

namespace muster {

bool LineStarts::feed_before(std::string_view bytes) {
  int64_t begin = position_ - static_cast<int64_t>(bytes.size());
  while (!found_) {
    size_t newline = bytes.rfind('\n');
    if (newline == std::string_view::npos) break;
    int64_t line_start = begin + static_cast<int64_t>(newline) + 1;
    bytes = bytes.substr(0, newline);
    // The newline right before the end is that of the last line itself.
    if (line_start < line_end() && !take(line_start)) break;
  }
  position_ = begin;
  return !found_;
}

bool LineStarts::at_begin() {
  if (!found_ && position_ < line_end()) take(position_);
  return !found_;
}

bool LineStarts::take(int64_t line_start) {
  int64_t text = std::min(line_end() - line_start, limits_.max_line);
  if (lines_ > 0 && bytes_ + text > limits_.max_bytes) {
    found_ = true;
    return false;
  }
  ++lines_;
  bytes_ += text;
  start_ = line_start;
  line_end_ = -1;
  found_ = lines_ >= limits_.max_lines;
  return !found_;
}

void LineStarts::jump(int64_t offset) {
  position_ = line_end_ = offset;
}

}  // namespace muster
