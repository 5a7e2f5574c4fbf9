// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "loop/timer.h"
#include "supervisor/cli/plan.h"
#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/job/recorder.h"
#include "supervisor/job/restart_policy.h"
#include "supervisor/job/watchdogs.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/workers/worker_group.h"

namespace muster {

class StoreServer;

// One job on this node, from the first attempt to its end: starts the workers, stops them together,
// judges a failed attempt, restarts it within the budget. Decides; the parts act. Owned by the
// supervisor's main, which forwards to it what the guard and the logs report.
//
//   stage      worker fails     all workers gone   stop signal          front lost
//   idle       (until start(), which is called before the loop runs)
//   running    stopping         settling           stopping             killing
//   stopping   (a victim)       settling           signal again / kill  killing
//   settling   -                (streams drain)    no restart           no restart
//   judging    -                -                  no restart           no restart
//   ended      -                -                  -                    -
//
// From settling, when every stream is drained, to judging; from there to running or ended.
class Job {
 public:
  struct Parts {
    Loop& loop;
    const LaunchPlan& plan;
    Recorder& recorder;
    JobLogs& logs;
    StoreServer* store;  // null when the workers host their own (agent_store false)
    WatchdogSettings watchdogs;
    int64_t file_limit = 0;  // RLIMIT_NOFILE that the workers get back
  };

  // `on_end` is called once, from the loop, with muster's exit code, when nothing of the job is
  // left and JobEnded is recorded.
  Job(const Parts& parts, std::function<void(int exit_code)> on_end);
  ~Job();

  void start();

  void on_signal(event::SignalReceived signal);
  void on_front_lost();
  void on_first_output(int local_rank, Stream stream);
  void on_drained(int local_rank);

  // Somebody has asked for the job's end, if only when its workers were gone already.
  bool asked_to_end() const { return stop_signal_ != 0 || late_signal_ != 0 || front_lost_; }

  // What the root cause of the last failed attempt left in its error file, "" if nothing.
  const std::string& root_error_file() const { return root_error_file_; }

 private:
  enum class Stage { kIdle, kRunning, kStopping, kSettling, kJudging, kEnded };

  void start_attempt();
  Result<void> start_worker(const WorkerPlan& worker, int master_port);
  void on_worker_exit(const WorkerEnd& end);
  void on_group_gone(const std::vector<event::LeftoverFound>& found);
  void on_timer_expired(int local_rank, const TimerRequest& request);
  void on_stuck(int local_rank, int pid, Milliseconds duration);
  void begin_stop(int signal, StopReason reason);
  void settle_if_quiet();
  void judge_attempt();
  void conclude(std::optional<Verdict> verdict);
  void end_without_failure();
  void watch_for_uneven_end();
  void end(Outcome outcome, int exit_code);

  int next_master_port() const;
  bool group_settled() const { return stage_ == Stage::kSettling || stage_ == Stage::kJudging; }

  Parts parts_;
  std::function<void(int)> on_end_;
  Stage stage_ = Stage::kIdle;
  int attempt_ = 0;
  std::vector<int> stop_signals_;  // --signals-to-handle as numbers
  std::unique_ptr<WorkerGroup> group_;
  std::unique_ptr<Watchdogs> watchdogs_;
  Owned<Timer> uneven_timer_;
  std::optional<event::FailureFound> stuck_;  // a worker that hangs in the kernel, found alive
  std::optional<event::SpawnFailed> spawn_failed_;
  std::set<int> undrained_;  // local ranks whose streams have not reached their end
  std::string root_error_file_;
  int stop_signal_ = 0;  // the first signal that asked the job to stop
  int late_signal_ = 0;  // one that came when no worker was left: only a restart heeds it
  int interrupts_ = 0;   // SIGINTs so far
  bool front_lost_ = false;
  int last_exit_code_ = 1;        // of the attempt before this one; 1 for want of any
  bool no_attempt_ = false;       // the folders of an attempt could not be made
  bool stuck_leftovers_ = false;  // something could not be ended
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // guards pool callbacks
};

}  // namespace muster
