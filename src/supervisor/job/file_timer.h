// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loop/fd_watch.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"

namespace muster {

// One request of PyTorch's FileTimerClient: a line of JSON in the pipe that
// TORCHELASTIC_TIMER_FILE names.
struct TimerRequest {
  int pid = 0;
  std::string scope_id;
  double expiration_time = 0;  // unix seconds, negative: release
  int signal = 0;
};

// Nothing if the line is not a request of version 1.
std::optional<TimerRequest> parse_timer_request(std::string_view line);

// The timers that clients hold, keyed by process and scope. Pure: times are passed in.
class TimerTable {
 public:
  void apply(const TimerRequest& request);

  // Earliest expiration, if any timer is held.
  std::optional<double> next_expiration() const;

  // Takes out every timer that expired by `now`: per process the first one that has a signal.
  std::vector<TimerRequest> take_expired(double now);

 private:
  std::map<std::pair<int, std::string>, TimerRequest> timers_;
};

// The watchdog that TORCHELASTIC_ENABLE_FILE_TIMER=1 asks for: a FIFO that workers write timers
// into, and a call when one expires. Owned by the job, one per attempt; removes the FIFO at its
// end. The job decides what to do with an expired timer (it signals the worker, which then is an
// ordinary death; muster never signals itself).
class FileTimer {
 public:
  // Replaces whatever lies at `path`.
  static Result<std::unique_ptr<FileTimer>> open(
      Loop& loop, std::string path, std::function<void(const TimerRequest&)> on_expired);
  ~FileTimer();

  const std::string& path() const { return path_; }

 private:
  FileTimer(Loop& loop, std::string path, UniqueFd fifo,
            std::function<void(const TimerRequest&)> on_expired);
  void on_readable();
  void rearm();
  void on_time();

  Loop& loop_;
  std::string path_;
  UniqueFd fifo_;
  std::function<void(const TimerRequest&)> on_expired_;
  std::string pending_;  // the start of a line whose end has not come
  TimerTable table_;
  Owned<FdWatch> watch_;
  Owned<Timer> timer_;
};

}  // namespace muster
