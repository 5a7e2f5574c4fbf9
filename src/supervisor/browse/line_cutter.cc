// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/line_cutter.h"

#include <algorithm>
#include <utility>

namespace muster {

LineCutter::LineCutter(int64_t offset, int64_t number, Limits limits)
    : limits_(limits), position_(offset) {
  limits_.max_lines = std::max<int64_t>(limits_.max_lines, 1);
  limits_.max_line = std::max<int64_t>(limits_.max_line, 1);
  begin_line(offset, number);
}

bool LineCutter::feed(std::string_view bytes) {
  while (!bytes.empty() && !full_) {
    size_t newline = bytes.find('\n');
    bool ends = newline != std::string_view::npos;
    std::string_view part = bytes.substr(0, ends ? newline : bytes.size());
    if (!take_line_bytes(part)) return false;
    position_ += static_cast<int64_t>(part.size()) + ends;
    bytes.remove_prefix(part.size() + ends);
    if (ends && !end_line(position_)) return false;
  }
  return !full_;
}

// False if the line does not fit into the page; then nothing of it counts as taken.
bool LineCutter::take_line_bytes(std::string_view bytes) {
  if (skipping_) return true;
  int64_t text = std::min(limits_.max_line, line_.size + static_cast<int64_t>(bytes.size()));
  if (!fits(text)) {
    full_ = true;
    return false;
  }
  line_.size += static_cast<int64_t>(bytes.size());
  size_t most = static_cast<size_t>(limits_.max_line);
  size_t taken = std::min(most - head_.size(), bytes.size());
  head_ += bytes.substr(0, taken);
  bytes.remove_prefix(taken);
  if (bytes.size() >= most) {
    tail_ = bytes.substr(bytes.size() - most);
  } else if (!bytes.empty()) {
    tail_ += bytes;
    if (tail_.size() > 2 * most) tail_.erase(0, tail_.size() - most);
  }
  return true;
}

bool LineCutter::fits(int64_t text) const {
  return lines_.empty() || text_bytes_ + text <= limits_.max_bytes;
}

// A line that is redrawn is worth its newest states, any other its beginning.
LogLine LineCutter::cut_line() const {
  LogLine line = line_;
  line.text = head_;
  if (line.size <= limits_.max_line) return line;
  std::string end = head_.substr(std::min(head_.size(), tail_.size())) + tail_;
  end.erase(0, end.size() - std::min(end.size(), static_cast<size_t>(limits_.max_line)));
  size_t redrawn = end.find('\r');
  // One at the very end belongs to the newline.
  if (redrawn == std::string::npos || redrawn + 1 == end.size()) return line;
  line.text = end.substr(redrawn + 1);
  line.skipped = line.size - static_cast<int64_t>(line.text.size());
  return line;
}

bool LineCutter::end_line(int64_t next_offset) {
  int64_t number = line_.number < 0 ? -1 : line_.number + 1;
  if (skipping_) {
    skipping_ = false;
    begin_line(next_offset, number);
    return true;
  }
  lines_.push_back(cut_line());
  text_bytes_ += static_cast<int64_t>(lines_.back().text.size());
  begin_line(next_offset, number);
  full_ =
      static_cast<int64_t>(lines_.size()) >= limits_.max_lines || text_bytes_ >= limits_.max_bytes;
  return !full_;
}

void LineCutter::begin_line(int64_t offset, int64_t number) {
  line_ = LogLine();
  line_.offset = offset;
  line_.number = number;
  head_.clear();
  tail_.clear();
}

LogLine LineCutter::open_line() const {
  LogLine line = cut_line();
  line.ended = false;
  return line;
}

void LineCutter::end_open() {
  if (full_ || !has_open()) return;
  lines_.push_back(open_line());
  begin_line(position_, -1);
}

bool LineCutter::jump(int64_t offset, int64_t number) {
  if (has_open()) end_line(position_);
  skipping_ = false;
  begin_line(offset, number);
  position_ = offset;
  return !full_;
}

std::vector<LogLine> LineCutter::take() {
  text_bytes_ = 0;
  // Bytes of a line that did not fit come again.
  if (std::exchange(full_, false) && position_ != line_.offset) {
    position_ = line_.offset;
    begin_line(line_.offset, line_.number);
  }
  return std::exchange(lines_, {});
}

}  // namespace muster
