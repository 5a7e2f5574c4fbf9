// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/indexed_log.h"

#include <algorithm>

namespace muster {

namespace {

constexpr int64_t kReadPiece = 256 * 1024;

}  // namespace

Result<std::optional<LogBytes>> IndexedLog::open() {
  auto log = LogBytes::open(path_);
  if (log && *log) follow_layout(**log);
  return log;
}

void IndexedLog::follow_layout(const LogBytes& log) {
  if (!(log.identity() == identity_) || log.size() < size_) {
    identity_ = log.identity();
    front_ = LineIndex();
    behind_.reset();
    hole_end_ = 0;
  }
  size_ = log.size();
  const LogLayout& layout = log.layout();
  if (layout.hole_end() == hole_end_) return;
  hole_end_ = layout.hole_end();
  front_.cut_off(layout.hole_begin());
  behind_ = LineIndex(hole_end_);
}

Result<bool> IndexedLog::count_to(LogBytes& log, int64_t offset, int64_t& budget) {
  while (true) {
    LineIndex& part = part_of(offset);
    int64_t end = &part == &front_ && behind_ ? log.layout().hole_begin() : log.size();
    // Behind the hole the lines up to where their number is known are counted in any case.
    int64_t known = log.cut().counted_to;
    bool unsettled = !part.settled() && known > part.counted_to();
    int64_t wanted = std::min(unsettled ? std::max(offset, known) : offset, end);
    if (part.counted_to() >= wanted) return true;
    if (budget <= 0) return false;
    int64_t count = std::min(kReadPiece, wanted - part.counted_to());
    if (unsettled) count = std::min(count, known - part.counted_to());
    auto piece = log.read(part.counted_to(), count);
    if (!piece) return piece.error();
    follow_layout(log);
    // Cut out, or emptied by somebody, meanwhile.
    LineIndex& now = part_of(offset);
    if (piece->offset != now.counted_to() || piece->bytes.empty()) return true;
    now.feed(piece->bytes);
    if (!now.settled() && now.counted_to() == log.cut().counted_to) {
      now.settle(log.cut().counted_lines);
    }
    budget -= static_cast<int64_t>(piece->bytes.size());
  }
}

Result<bool> IndexedLog::count_to_line(LogBytes& log, int64_t number, int64_t& budget) {
  for (bool behind : {false, true}) {
    if (behind && !behind_) break;
    while (true) {
      const LineIndex& part = behind && behind_ ? *behind_ : front_;
      if (part.lines() >= number) return true;
      int64_t before = part.counted_to();
      int64_t end = !behind && behind_ ? log.layout().hole_begin() : log.size();
      if (before >= end) break;
      auto counted = count_to(log, std::min(before + kReadPiece, end), budget);
      if (!counted) return counted.error();
      if (!*counted) return false;
      if ((behind && behind_ ? *behind_ : front_).counted_to() == before) break;  // it has changed
    }
  }
  return true;
}

int64_t IndexedLog::uncounted_before(int64_t offset) const {
  return std::max<int64_t>(0, offset - part_of(offset).counted_to());
}

std::optional<LineIndex::Point> IndexedLog::before_line(int64_t number) const {
  if (behind_) {
    if (auto point = behind_->before_line(number)) return point;
  }
  return front_.before_line(number);
}

int64_t IndexedLog::lines(const LogBytes& log) const {
  const LineIndex& last = behind_ ? *behind_ : front_;
  return last.counted_to() == log.size() ? last.lines() : -1;
}

}  // namespace muster
