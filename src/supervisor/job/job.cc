// SPDX-License-Identifier: Apache-2.0
// From the assignment to the first failure. How a job stops is in job_stop.cc, how it is judged and
// ends in job_end.cc.
#include "supervisor/job/job.h"

#include <signal.h>

#include <utility>

#include "loop/check.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/gather.h"
#include "supervisor/job/known_operations.h"
#include "supervisor/job/outcome.h"
#include "supervisor/job/recording.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

namespace {

// For trouble of muster's own: no worker's exit code tells it.
constexpr int kExitTrouble = 1;

}  // namespace

Job::Job(const Parts& parts, std::function<void(int)> on_end)
    : parts_(parts),
      on_end_(std::move(on_end)),
      stop_signals_(stop_signals(parts.plan.options)),
      surroundings_(worker_folders(parts.plan, parts.logs)) {
  surroundings_.set_store_wait(parts.store_wait);
  surroundings_.set_gpu(parts.gpu);
}

Job::~Job() {
  *alive_ = false;
}

void Job::start() {
  MUST(stage_ == Stage::kIdle);
  stage_ = Stage::kWaiting;
  parts_.link.join();
}

void Job::on_assignment(const Assignment& assignment) {
  if (stage_ != Stage::kWaiting) {
    if (stage_ == Stage::kEnded) return;
    parts_.recorder.trouble("rendezvous", "an assignment came while workers are still running");
    return;
  }
  assignment_ = assignment;
  start_attempt();
}

void Job::start_attempt() {
  record_unjudged();
  stage_ = Stage::kRunning;
  undrained_.clear();
  spawn_failed_.reset();
  stuck_.reset();
  stopped_ = false;
  trouble_.clear();
  operations_.clear();
  surroundings_.begin_attempt();
  pages_ = std::make_unique<WorkerPages>(static_cast<int>(parts_.plan.workers.size()));
  watchdogs_ = std::make_unique<Watchdogs>(
      parts_.loop, parts_.watchdogs,
      Watchdogs::Callbacks{
          [this](int local_rank, const TimerRequest& request) {
            on_timer_expired(local_rank, request);
          },
          [this](int local_rank, int pid, Milliseconds duration) {
            on_stuck(local_rank, pid, duration);
          },
          [this](const std::string& message) { parts_.recorder.trouble("watchdog", message); }});
  record_attempt();
  start_group();
}

void Job::record_attempt() {
  event::AttemptStarted started;
  started.attempt = assignment_.attempt;
  started.restart_count = assignment_.restart_count;
  started.node = assignment_.node;
  started.node_count = assignment_.node_count;
  started.world_size = assignment_.world_size;
  started.master_addr = assignment_.master_addr;
  started.master_port = assignment_.master_port;
  started.nodes = assignment_.nodes;
  if (started.nodes.empty()) {
    started.nodes = {{assignment_.node, parts_.plan.host, assignment_.first_rank,
                      static_cast<int>(parts_.plan.workers.size())}};
  }
  parts_.recorder.record(std::move(started));
}

void Job::start_group() {
  WorkerGroup::Limits limits;
  limits.term_to_kill =
      std::chrono::duration_cast<Milliseconds>(parts_.plan.options.shutdown_timeout);
  group_ = std::make_unique<WorkerGroup>(
      parts_.loop, limits,
      WorkerGroup::Callbacks{
          [this](const WorkerEnd& end) { on_worker_exit(end); },
          [this](const SentSignal& sent) {
            const int rank = sent.local_rank < 0 ? -1 : rank_of(sent.local_rank);
            parts_.recorder.record(event::SignalSent{assignment_.attempt, rank, sent.pid,
                                                     sent.signal, sent.to_group, sent.reason});
          },
          [this](const std::vector<event::LeftoverFound>& found) { on_group_gone(found); }});

  Result<void> begun = parts_.logs.begin_attempt(assignment_.attempt, assignment_.first_rank);
  if (!begun) {
    parts_.recorder.trouble("logs", begun.error().message);
    trouble_ = begun.error().message;
    stage_ = Stage::kStopping;
    group_->seal();
    return;
  }
  // The workers' programs are alike, and so are their folders.
  recording_pipes_ = is_python(parts_.plan.workers.front().executable) &&
                     can_hold_pipes(recording_beside(parts_.logs.error_file(0)));
  for (const WorkerPlan& worker : parts_.plan.workers) {
    if (start_worker(worker)) continue;
    begin_stop(SIGTERM, StopReason::kFailure);
    break;
  }
  group_->seal();
  if (spawn_failed_) {
    Evidence evidence;
    evidence.attempt = assignment_.attempt;
    evidence.rank = spawn_failed_->rank;
    evidence.local_rank = spawn_failed_->local_rank;
    evidence.spawn_errno = spawn_failed_->code;
    evidence.spawn_message = spawn_failed_->message;
    fail(diagnose(evidence));
  }
}

Result<void> Job::start_worker(const WorkerPlan& worker) {
  const int local_rank = worker.local_rank;
  auto fail = [&](const Error& error) {
    spawn_failed_ = event::SpawnFailed{assignment_.attempt, rank_of(local_rank), local_rank,
                                       error.code, error.message};
    parts_.recorder.record(*spawn_failed_);
    return Result<void>(error);
  };
  auto stdio = parts_.logs.open_worker(local_rank);
  if (!stdio) return fail(Error{kNotExecuted, stdio.error().message});

  SpawnSpec spec;
  spec.executable = worker.executable;
  spec.argv = worker.argv;
  spec.environment =
      environment_for(parts_.plan, worker, assignment_,
                      AttemptFiles{parts_.logs.error_file(local_rank), watchdogs_->timer_path(),
                                   usable(pages_->make(local_rank)),
                                   recording_beside(parts_.logs.error_file(local_rank)),
                                   usable(pages_->make_progress(local_rank)), recording_pipes_});
  spec.stdio = std::move(*stdio);
  spec.controlling_terminal =
      parts_.plan.options.pty && spec.stdio[0].kind == StdioSource::Kind::kFd;
  spec.file_limit = parts_.file_limit;
  spec.cpus = worker.cpus;
  Result<int> pid = group_->spawn(local_rank, std::move(spec));
  if (!pid) {
    parts_.logs.worker_not_started(local_rank);
    return fail(pid.error());
  }
  undrained_.insert(local_rank);
  parts_.recorder.record(
      event::WorkerSpawned{assignment_.attempt, rank_of(local_rank), local_rank, *pid});
  parts_.logs.worker_started(local_rank, *pid);
  watchdogs_->worker_started(local_rank, *pid);
  return {};
}

// A job runs as well without.
std::string Job::usable(const Result<std::string>& page) {
  if (page) return *page;
  if (!std::exchange(told_no_pages_, true)) {
    parts_.recorder.trouble("pages",
                            "no pages for the workers to report in: " + page.error().message);
  }
  return "";
}

void Job::on_first_output(int local_rank, Stream stream) {
  parts_.recorder.record(event::FirstOutput{assignment_.attempt, rank_of(local_rank), stream});
}

void Job::on_timer_expired(int local_rank, const TimerRequest& request) {
  parts_.recorder.record(
      event::Trouble{"watchdog", "rank " + std::to_string(rank_of(local_rank)) + " (pid " +
                                     std::to_string(request.pid) + ") did not renew its timer '" +
                                     request.scope_id + "': sent " + signal_name(request.signal)});
  ::kill(request.pid, request.signal);
}

// torchrun ends such a job with exit code 0; here it is a failure like any other, except that the
// culprit is still alive and cannot be ended by us.
void Job::on_stuck(int local_rank, int pid, Milliseconds duration) {
  if (stage_ != Stage::kRunning) return;
  event::FailureFound found;
  found.attempt = assignment_.attempt;
  found.rank = rank_of(local_rank);
  found.local_rank = local_rank;
  found.pid = pid;
  found.kind = "hung";
  found.exit_code = kExitTrouble;
  found.message = "stuck in uninterruptible sleep for " +
                  std::to_string((duration.count() + 500) / 1000) + " s (wait channel " +
                  read_wait_channel(pid) + ")";
  found.can_heal = false;
  stuck_ = found;
  begin_stop(SIGTERM, StopReason::kFailure);
  fail(found);
}

void Job::on_worker_exit(const WorkerEnd& end) {
  watchdogs_->worker_ended(end.local_rank);
  parts_.recorder.record(event::WorkerExited{assignment_.attempt, rank_of(end.local_rank),
                                             end.local_rank, end.pid, end.wait_status,
                                             end.max_rss_kib});
  if (end.wait_status != 0) note_failure(rank_of(end.local_rank), end);
  if (hold_ && !several_nodes() && group_->running() == 0) hold_->give_up();
}

void Job::note_failure(int rank, const WorkerEnd& end) {
  const bool stopped =
      parts_.recorder.state().current()->find(rank)->stopped_for != StopReason::kNone;
  if (!stopped) surroundings_.note_death(end.pid, end.wait_status);
  if (stage_ != Stage::kRunning) return;
  if (!hold_) {
    hold_ = std::make_unique<FailureHold>(
        FailureHold::Parts{parts_.loop, parts_.recorder, parts_.logs, *pages_, surroundings_,
                           parts_.failure_rules},
        [this](int culprit) { on_hold_over(culprit); });
  }
  hold_->died(rank);
}

void Job::on_hold_over(int rank) {
  hold_.reset();
  if (stage_ == Stage::kRunning) begin_stop(SIGTERM, StopReason::kFailure);
  // All are gone already, and nobody had to be stopped.
  if (!stopped_) operations_ = known_operations(*parts_.recorder.state().current(), *pages_);
  fail_of(rank);
  settle_if_quiet();
}

void Job::fail_of(int rank) {
  const JobState& state = parts_.recorder.state();
  fail(preliminary_failure(state, *state.current()->find(rank), surroundings_));
}

// The other nodes are to stop too, without waiting for our evidence.
void Job::fail(const event::FailureFound& preliminary) {
  FailureNotice notice{assignment_.attempt, preliminary};
  complete_failure(notice.preliminary, parts_.recorder.state(), parts_.logs);
  parts_.link.failed(notice);
}

}  // namespace muster
