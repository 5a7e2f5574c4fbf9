// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/job/event.h"

namespace muster {

// Appends events to events.jsonl, one line each, in libuv's pool: a stalled disk never blocks the
// loop. While one batch is written the next one gathers. Each line is one write's part, so that
// after a kill -9 the file ends in a whole line or in one cut line. Owned by the job; what was
// appended before the owner goes is still written, as long as the loop turns.
class EventLog {
 public:
  // Events beyond this much unwritten text are dropped and counted, the last event of a job never.
  static constexpr size_t kMaxPendingBytes = 16 << 20;

  // `on_trouble` is told about the first failed write after each good one, and about drops.
  static Result<std::unique_ptr<EventLog>> open(Loop& loop, const std::string& path,
                                                std::function<void(const std::string&)> on_trouble);
  ~EventLog();

  void append(const Event& event);

  // Calls back, from the loop, when nothing is left to write (or a write failed).
  void flush(std::function<void()> on_done);

 private:
  struct State;
  explicit EventLog(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

struct EventHistory {
  std::vector<Event> events;
  int64_t skipped_lines = 0;  // damaged ones in the middle, or of a newer version
  bool cut_at_end = false;    // the last line is not whole: the writer was killed
};

// Reads such a file back. Blocks: not for the loop of a running job.
Result<EventHistory> read_events(const std::string& path);

}  // namespace muster
