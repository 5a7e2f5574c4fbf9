// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/line_index.h"

#include <algorithm>

#include "supervisor/logs/newlines.h"

namespace muster {

LineIndex::LineIndex(int64_t begin) : points_{{begin, 0}}, counted_to_(begin) {}

void LineIndex::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    // Up to where the next point is due newlines are only counted; the first line start behind it
    // becomes the point.
    int64_t due = std::max<int64_t>(points_.back().offset + spacing_ - 1 - counted_to_, 0);
    std::string_view part = bytes.substr(0, static_cast<size_t>(due));
    lines_ += count_newlines(part);
    counted_to_ += static_cast<int64_t>(part.size());
    bytes.remove_prefix(part.size());
    if (bytes.empty()) return;
    size_t newline = bytes.find('\n');
    size_t taken = newline == std::string_view::npos ? bytes.size() : newline + 1;
    counted_to_ += static_cast<int64_t>(taken);
    bytes.remove_prefix(taken);
    if (newline == std::string_view::npos) return;
    points_.push_back({counted_to_, ++lines_});
    if (points_.size() < kMaxPoints) continue;
    size_t kept = 0;
    for (size_t i = 0; i < points_.size(); i += 2)
      points_[kept++] = points_[i];
    points_.resize(kept);
    spacing_ *= 2;
  }
}

void LineIndex::settle(int64_t lines) {
  for (Point& point : points_)
    point.number += lines - lines_;
  lines_ = lines;
  settled_ = true;
}

// How many lines there are before `end` is counted again from the last point that is left.
void LineIndex::cut_off(int64_t end) {
  if (counted_to_ <= end) return;
  while (points_.size() > 1 && points_.back().offset > end)
    points_.pop_back();
  counted_to_ = points_.back().offset;
  lines_ = points_.back().number;
}

std::optional<LineIndex::Point> LineIndex::before_offset(int64_t offset) const {
  if (offset > counted_to_) return std::nullopt;
  auto after =
      std::upper_bound(points_.begin(), points_.end(), offset,
                       [](int64_t wanted, const Point& point) { return wanted < point.offset; });
  if (after == points_.begin()) return std::nullopt;
  Point found = *std::prev(after);
  if (!settled_) found.number = -1;
  return found;
}

std::optional<LineIndex::Point> LineIndex::before_line(int64_t number) const {
  if (!settled_) return std::nullopt;
  auto after =
      std::upper_bound(points_.begin(), points_.end(), number,
                       [](int64_t wanted, const Point& point) { return wanted < point.number; });
  if (after == points_.begin()) return std::nullopt;
  return *std::prev(after);
}

}  // namespace muster
