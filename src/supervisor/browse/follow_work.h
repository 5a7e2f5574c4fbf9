// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "loop/result.h"
#include "supervisor/browse/indexed_log.h"
#include "supervisor/browse/line_cutter.h"
#include "supervisor/browse/log_reader.h"

namespace muster {

// What one follower reads, on the pool: from its place to the log's present end, a page at a time.
// Remembers the beginning of a line that has not ended, so that nothing is read twice however long
// that becomes.
class FollowWork {
 public:
  FollowWork(std::shared_ptr<IndexedLog> log, LogReader::FollowSettings settings)
      : indexed_(std::move(log)), settings_(settings) {}

  // One piece.
  void run();

  // What it found: nothing, or a page, or why it cannot be read.
  std::optional<Result<LogPage>> take() { return std::exchange(found_, std::nullopt); }
  // There is more to read at once.
  bool more() const { return more_; }
  // The kernel tells of changes: the log is on a disk of this machine.
  bool watchable() const { return watchable_; }

 private:
  Result<void> read(LogBytes& log);
  Result<void> take_place(LogBytes& log);
  Result<void> take_number(LogBytes& log);
  void jump_ahead(const LogBytes& log);
  void make_page(LogBytes& log);
  void begin_at(int64_t offset);

  std::shared_ptr<IndexedLog> indexed_;
  LogReader::FollowSettings settings_;
  LogBytes::Identity identity_;
  std::optional<LineCutter> cutter_;
  bool numbered_ = false;
  int64_t shown_open_ = -1;  // bytes of the unfinished line that were in a page
  std::optional<Result<LogPage>> found_;
  bool more_ = false;
  bool watchable_ = true;
};

}  // namespace muster
