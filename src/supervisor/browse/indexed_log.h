// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "supervisor/browse/line_index.h"
#include "supervisor/browse/log_bytes.h"

namespace muster {

// What is remembered of one log between pieces of work: its lines. Shared by all who read it; only
// the one thread of the BrowseGate touches it.
class IndexedLog {
 public:
  explicit IndexedLog(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Opens it, and forgets what is known if it is another log than before. Nothing: there is none.
  Result<std::optional<LogBytes>> open();

  // The log's layout has been looked at again.
  void follow_layout(const LogBytes& log);

  // Count on, at most about `budget` bytes of which they take what they read. True when what is
  // asked for was counted, or is not there.
  Result<bool> count_to(LogBytes& log, int64_t offset, int64_t& budget);
  Result<bool> count_to_line(LogBytes& log, int64_t number, int64_t& budget);
  Result<bool> count_all(LogBytes& log, int64_t& budget) {
    return count_to_line(log, INT64_MAX, budget);
  }
  // How many bytes count_to() would have to read.
  int64_t uncounted_before(int64_t offset) const;

  // Known line starts (line_index.h); a line in the hole is one before it.
  std::optional<LineIndex::Point> before_line(int64_t number) const;
  std::optional<LineIndex::Point> before_offset(int64_t offset) const {
    return part_of(offset).before_offset(offset);
  }
  // Newlines in the whole stream, -1 while not all are counted.
  int64_t lines(const LogBytes& log) const;

 private:
  LineIndex& part_of(int64_t offset) { return behind_ && offset >= hole_end_ ? *behind_ : front_; }
  const LineIndex& part_of(int64_t offset) const {
    return behind_ && offset >= hole_end_ ? *behind_ : front_;
  }

  std::string path_;
  LogBytes::Identity identity_;
  int64_t size_ = 0;
  int64_t hole_end_ = 0;
  LineIndex front_;
  std::optional<LineIndex> behind_;  // the hole
};

}  // namespace muster
