// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/cli/plan.h"
#include "supervisor/job/file_timer.h"

namespace muster {

// What torchrun's watchdog variables ask for.
struct WatchdogSettings {
  bool file_timer = false;      // TORCHELASTIC_ENABLE_FILE_TIMER is exactly "1"
  std::string timer_path;       // TORCHELASTIC_TIMER_FILE, else one in the temporary folder
  Milliseconds stuck_after{0};  // TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT (seconds), 0 = off
};
WatchdogSettings watchdog_settings(const Environment& environment);

// Watches the workers of one attempt beside their lives and deaths: timers that they set themselves
// and failed to renew, and main processes that stay in uninterruptible sleep. Owned by the job, one
// per attempt. Costs nothing unless asked for.
class Watchdogs {
 public:
  struct Callbacks {
    // A timer of process `request.pid`, a worker or a member of its session, ran out.
    std::function<void(int local_rank, const TimerRequest& request)> on_expired;
    // The worker has been in state D for `duration` and still is.
    std::function<void(int local_rank, int pid, Milliseconds duration)> on_stuck;
    std::function<void(const std::string& message)> on_trouble;
  };

  Watchdogs(Loop& loop, const WatchdogSettings& settings, Callbacks callbacks);

  // The value of TORCHELASTIC_TIMER_FILE for the workers, "" if there is no timer.
  std::string timer_path() const { return file_timer_ ? file_timer_->path() : ""; }

  void worker_started(int local_rank, int pid);
  void worker_ended(int local_rank);

 private:
  struct Watched {
    int pid = 0;
    Clock::time_point stuck_since{};  // epoch: not stuck when last looked at
  };
  void on_expired(const TimerRequest& request);
  void look();

  Callbacks callbacks_;
  Milliseconds stuck_after_;
  std::map<int, Watched> workers_;  // by local rank
  std::unique_ptr<FileTimer> file_timer_;
  Owned<Timer> look_timer_;
};

}  // namespace muster
