// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "loop/timer.h"
#include "supervisor/cli/plan.h"
#include "supervisor/diagnosis/judge.h"
#include "supervisor/evidence/surroundings.h"
#include "supervisor/job/failure_hold.h"
#include "supervisor/job/recorder.h"
#include "supervisor/job/watchdogs.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/rendezvous/job_link.h"
#include "supervisor/workers/worker_group.h"
#include "supervisor/workers/worker_pages.h"

namespace muster {

// This node's part of one job: starts the workers that the coordinator assigns, stops them
// together, gathers what is known of their ends and reports it. What follows (another attempt, the
// end, whose fault it was) is decided for all nodes at the other end of the JobLink. Owned by the
// supervisor's main, which forwards to it what the guard, the logs and the link report.
//
//   stage      worker fails  all workers gone  order or signal to stop   front lost
//   idle       (until start())
//   waiting    -             -                 passed on; without a      end
//                                              coordinator: end
//   running    held, then    settling          stopping                  killing
//              stopping
//   stopping   (a victim)    settling          signal again / kill       killing
//   settling   -             (streams drain)   passed on                 end when judged
//   judging    -             -                 passed on                 end when judged
//   ended      -             -                 -                         -
//
// From settling, when every stream is drained, to judging, and with the report back to waiting: an
// assignment leads from there to running, the coordinator's word to ended. If the stop after a
// failure takes long, what is known by then is told before its end (JobLink::ending), and an early
// verdict may come in any stage.
class Job {
 public:
  struct Parts {
    Loop& loop;
    const LaunchPlan& plan;
    Recorder& recorder;
    JobLogs& logs;
    JobLink& link;
    WatchdogSettings watchdogs;
    int64_t file_limit = 0;                       // RLIMIT_NOFILE that the workers get back
    const FailureRules* failure_rules = nullptr;  // outlive the job
    // Surroundings::set_store_wait; may be missing.
    std::function<std::string(int pid)> store_wait{};
    std::function<Surroundings::Gpu(int local_rank)> gpu{};  // likewise, set_gpu
  };

  // `on_end` is called once, from the loop, with muster's exit code, when nothing of the job is
  // left here and JobEnded is recorded.
  Job(const Parts& parts, std::function<void(int exit_code)> on_end);
  ~Job();

  void start();

  // From the link.
  void on_assignment(const Assignment& assignment);
  void on_stop(const StopOrder& order);
  void on_verdict(const AttemptVerdict& verdict);
  void on_job_end(const JobEnd& end);

  // From the guard and the logs.
  void on_signal(event::SignalReceived signal);
  void on_front_lost();
  // Somebody who may asks for the job's end, on all nodes, without a signal: as SIGTERM, or at once
  // (`kill`). `who` is for the record. The text says why it cannot be done, "" if it has begun.
  std::string request_stop(const std::string& who, bool kill);
  // The same for another attempt instead of the one that runs, on all nodes.
  std::string request_restart(const std::string& who);
  void on_first_output(int local_rank, Stream stream);
  void on_closed(int local_rank);
  void on_drained(int local_rank);

  // Somebody has asked for the job's end here, if only when its workers were gone already.
  bool asked_to_end() const { return stop_signal_ != 0 || front_lost_; }

  // What a worker that runs tells of itself; null if there is none.
  std::shared_ptr<const UniqueFd> page(int local_rank) const {
    return pages_ ? pages_->find(local_rank) : nullptr;
  }

  // And the file into which it may write its progress; likewise.
  std::shared_ptr<const UniqueFd> progress_file(int local_rank) const {
    return pages_ ? pages_->find_progress(local_rank) : nullptr;
  }

  // The job ended here because muster's other process was killed.
  bool front_lost() const { return front_lost_; }

  // What the root cause left in its error file, "" if nothing or if it is another node's.
  const std::string& root_error_file() const { return root_error_file_; }

 private:
  enum class Stage { kIdle, kWaiting, kRunning, kStopping, kSettling, kJudging, kEnded };

  void start_attempt();
  void start_group();
  void record_attempt();
  Result<void> start_worker(const WorkerPlan& worker);
  std::string usable(const Result<std::string>& page);
  void on_worker_exit(const WorkerEnd& end);
  void note_failure(int rank, const WorkerEnd& end);
  void on_hold_over(int rank);
  void fail_of(int rank);
  void on_group_gone(const std::vector<event::LeftoverFound>& found);
  void on_timer_expired(int local_rank, const TimerRequest& request);
  void on_stuck(int local_rank, int pid, Milliseconds duration);
  void begin_stop(int signal, StopReason reason, const std::set<int>& hung_local_ranks = {});
  std::set<int> own_ranks(const std::string& ranges) const;
  void kill_now(StopReason reason);
  void note_stop();
  void fail(const event::FailureFound& preliminary);
  void stop_here(const event::SignalReceived& signal, bool kill);
  void stop_everywhere(const event::SignalReceived& signal, bool kill);
  void record_unjudged();
  void record_failure(event::FailureFound failure);
  void tell_early();
  NodeOutcome outcome_for(const AttemptEnds& ends) const;
  void settle_if_quiet();
  void judge_attempt();
  void gather(std::function<void(const std::vector<Evidence>&)> on_gathered);
  void report_outcome(const std::vector<Evidence>& evidence);
  void end_alone();
  void end(const JobEnd& how);

  int rank_of(int local_rank) const { return assignment_.first_rank + local_rank; }
  bool has_workers() const { return stage_ == Stage::kRunning || stage_ == Stage::kStopping; }
  bool several_nodes() const { return parts_.plan.rendezvous.several_nodes(); }

  Parts parts_;
  std::function<void(int)> on_end_;
  Stage stage_ = Stage::kIdle;
  Assignment assignment_;
  std::vector<int> stop_signals_;  // --signals-to-handle as numbers
  std::unique_ptr<WorkerGroup> group_;
  std::unique_ptr<Watchdogs> watchdogs_;
  std::unique_ptr<WorkerPages> pages_;
  Surroundings surroundings_;
  bool told_no_pages_ = false;
  bool recording_pipes_ = false;       // the workers may make them (recording.h), in this attempt
  std::unique_ptr<FailureHold> hold_;  // from the first failure to the stop
  std::vector<KnownRank> operations_;  // when this attempt's first stop began
  Owned<Timer> early_;                 // from a failure's stop to what is told before its end
  bool gathering_early_ = false;
  std::optional<AttemptVerdict> unjudged_;    // this node's own, until the one for all comes
  std::optional<event::FailureFound> stuck_;  // a worker that hangs in the kernel, found alive
  std::optional<event::SpawnFailed> spawn_failed_;
  std::set<int> undrained_;  // local ranks whose streams have not reached their end
  std::string root_error_file_;
  std::map<int, std::string> error_files_;  // by rank, until the verdict is known
  int stop_signal_ = 0;                     // the first signal here that asked for an end
  int interrupts_ = 0;                      // SIGINTs so far
  bool stopped_ = false;                    // this attempt's workers were told to stop
  bool front_lost_ = false;
  bool alone_ = false;  // the end is decided here: the front is lost, this node leaves, or
                        // there is no coordinator to ask
  std::optional<JobEnd> early_end_;                             // came while workers still ran
  std::string trouble_;                                         // this attempt could not be begun
  bool stuck_leftovers_ = false;                                // something could not be ended
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // guards pool callbacks
};

}  // namespace muster
