// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/log_layout.h"

#include <algorithm>

#include "supervisor/logs/log_file.h"

namespace muster {

LogLayout::LogLayout(const LogCut& cut, int64_t file_size) {
  if (cut.head_end == 0) {
    add(0, 0, file_size);
    return;
  }
  add(0, 0, std::min(cut.head_end, file_size));
  // A file that somebody has cut off within the head has no hole.
  if (file_size < cut.head_end) return;
  hole_begin_ = cut.head_end;
  hole_end_ = size_ = cut.head_end + cut.left_out;
  int64_t rest = cut.head_end + LogFile::kMarkerLength;
  bool cutting = cut.to >= rest;
  add(hole_end_, rest, (cutting ? std::min(cut.to, file_size) : file_size) - rest);
  if (cutting) add(hole_end_ + cut.to - rest, cut.from, file_size - cut.from);
}

void LogLayout::add(int64_t offset, int64_t place, int64_t size) {
  if (size <= 0) return;
  parts_[count_++] = {offset, place, size};
  size_ = offset + size;
}

std::optional<LogLayout::Part> LogLayout::at(int64_t offset) const {
  for (size_t i = 0; i < count_; ++i) {
    const Part& part = parts_[i];
    if (offset >= part.offset + part.size) continue;
    int64_t skipped = std::max<int64_t>(0, offset - part.offset);
    return Part{part.offset + skipped, part.place + skipped, part.size - skipped};
  }
  return std::nullopt;
}

}  // namespace muster
