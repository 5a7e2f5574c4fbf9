// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "supervisor/commands/log_lines.h"

namespace muster {

// Brings the lines of several logs into the order of their times. Lines of one log stay in order;
// one whose time is not known goes with the line before it. Pure: whoever drives it asks for pages
// of the logs that it needs next, and takes what can be said for sure.
class LogMerge {
 public:
  explicit LogMerge(size_t logs) : logs_(logs) {}

  // The logs of which nothing waits and that have not ended: their next page decides.
  std::vector<size_t> needs() const;

  void add(size_t log, std::vector<ShownLine> lines);
  void end(size_t log) { logs_[log].ended = true; }

  // The lines that come first, whatever follows.
  std::vector<ShownLine> take();

  // Every log has ended and all was taken.
  bool done() const;

 private:
  struct Waiting {
    int64_t time_us = 0;
    ShownLine line;
  };
  struct Log {
    std::deque<Waiting> lines;
    int64_t last_us = 0;
    bool ended = false;
  };

  std::vector<Log> logs_;
};

}  // namespace muster
