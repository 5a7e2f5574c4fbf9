// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/job.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "loop/check.h"
#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/stop_sender.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/gather.h"
#include "supervisor/job/known_operations.h"
#include "supervisor/job/outcome.h"
#include "supervisor/job/recording.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

namespace {

// How long the end of an attempt waits for pipes that something we could not end keeps open.
constexpr Milliseconds kDrainBound{2'000};

// For trouble of muster's own: no worker's exit code tells it.
constexpr int kExitTrouble = 1;

// Of one node the ranks themselves show who was stopped, but not who only fell with another.
bool fell_by_cause(const AttemptVerdict& verdict) {
  return std::any_of(verdict.others.begin(), verdict.others.end(), shows_victim);
}

// Most stops are over by then. Part of the second in which a failure is explained.
constexpr Milliseconds kEarlyWord{200};

bool is_known(const JobState& state, const event::FailureFound& failure) {
  const AttemptState* attempt = state.current();
  if (attempt == nullptr || attempt->attempt != failure.attempt || !attempt->root_cause)
    return false;
  return failure.rank >= 0 && failure.rank == attempt->root_cause->rank;
}

// That an order may name: more are stopped without a word of their own.
constexpr size_t kMaxHungRanks = 100'000;

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

void Job::begin_stop(int signal, StopReason reason, const std::set<int>& hung_local_ranks) {
  const bool first = !stopped_;
  note_stop();
  group_->stop(signal, reason, hung_local_ranks);
  if (!first || reason != StopReason::kFailure) return;
  early_ = Timer::start(parts_.loop, kEarlyWord, [this] { tell_early(); });
}

// Nobody waits with the reason until the last worker has obeyed.
void Job::tell_early() {
  early_.reset();
  if (alone_ || early_end_) return;
  gathering_early_ = true;
  gather([this](const std::vector<Evidence>& evidence) {
    gathering_early_ = false;
    NodeOutcome so_far =
        outcome_for(ends_of(parts_.recorder.state(), parts_.logs, evidence, stuck_));
    so_far.early = true;
    parts_.link.ending(so_far);
    settle_if_quiet();
  });
}

// Those of this node, as local ranks.
std::set<int> Job::own_ranks(const std::string& ranges) const {
  std::set<int> local_ranks;
  const int workers = static_cast<int>(parts_.plan.workers.size());
  for (int rank : parse_ranges(ranges, kMaxHungRanks)) {
    const int local_rank = rank - assignment_.first_rank;
    if (local_rank >= 0 && local_rank < workers) local_ranks.insert(local_rank);
  }
  return local_ranks;
}

void Job::kill_now(StopReason reason) {
  note_stop();
  group_->kill_now(reason);
}

// What the workers were doing is read before they hear of it.
void Job::note_stop() {
  if (auto hold = std::move(hold_)) fail_of(hold->first());
  if (!stopped_) operations_ = known_operations(*parts_.recorder.state().current(), *pages_);
  stage_ = Stage::kStopping;
  stopped_ = true;
}

void Job::on_stop(const StopOrder& order) {
  // Elsewhere somebody has failed: there is nobody to wait for.
  if (hold_ && !has_workers() && order.attempt == assignment_.attempt) hold_->give_up();
  if (!has_workers() || order.attempt != assignment_.attempt) return;
  if (several_nodes()) {
    parts_.recorder.record(
        event::StopOrdered{order.attempt, order.signal, order.reason, order.why});
  }
  if (order.kill) return kill_now(order.reason);
  // Our own signal has reached the workers already, and a stop needs no second reason.
  const bool news = order.reason == StopReason::kSignal && stop_signal_ == 0;
  if (stage_ == Stage::kRunning || news) {
    begin_stop(order.signal, order.reason, own_ranks(order.hung));
  }
}

void Job::on_signal(event::SignalReceived signal) {
  if (stage_ == Stage::kIdle || stage_ == Stage::kEnded) return;
  const bool stops =
      std::find(stop_signals_.begin(), stop_signals_.end(), signal.signal) != stop_signals_.end();
  signal.forwarded = !stops;
  if (several_nodes()) signal.host = parts_.plan.host;
  parts_.recorder.record(signal);
  if (!stops) {
    if (stage_ == Stage::kRunning) group_->forward(signal.signal);
    return;
  }
  if (signal.signal == SIGINT) ++interrupts_;
  if (stop_signal_ == 0) stop_signal_ = signal.signal;
  const bool kill = signal.signal == SIGINT && interrupts_ > 1;
  stop_here(signal, kill);
  if (stage_ == Stage::kEnded) return;
  const bool leaves =
      several_nodes() && parts_.plan.rendezvous.on_node_signal == OnNodeSignal::kLeave;
  if (leaves && !alone_) {
    alone_ = true;
    parts_.link.leave();
  }
  stop_everywhere(signal, kill);
}

std::string Job::request_stop(const std::string& who, bool kill) {
  if (stage_ == Stage::kIdle) return "the job has not begun";
  if (stage_ == Stage::kEnded) return "the job has ended";
  event::SignalReceived signal;
  signal.signal = SIGTERM;
  signal.sender = who;
  if (several_nodes()) signal.host = parts_.plan.host;
  parts_.recorder.record(signal);
  if (stop_signal_ == 0) stop_signal_ = SIGTERM;
  stop_here(signal, kill);
  stop_everywhere(signal, kill);
  return "";
}

std::string Job::request_restart(const std::string& who) {
  if (stage_ == Stage::kIdle) return "the job has not begun";
  if (stage_ == Stage::kEnded) return "the job has ended";
  if (alone_) return "this node has left the job";
  return parts_.link.request_restart(who);
}

void Job::stop_everywhere(const event::SignalReceived& signal, bool kill) {
  if (stage_ == Stage::kEnded) return;
  if (!alone_ && !parts_.link.request_stop(signal, kill)) alone_ = true;
  if (alone_ && stage_ == Stage::kWaiting) end_alone();
}

// Our own workers hear of it without a detour, so that a coordinator that does not answer costs
// them nothing of their grace.
void Job::stop_here(const event::SignalReceived& signal, bool kill) {
  if (!has_workers()) return;
  kill ? kill_now(StopReason::kSignal) : begin_stop(signal.signal, StopReason::kSignal);
}

void Job::on_front_lost() {
  if (stage_ == Stage::kIdle || stage_ == Stage::kEnded) return;
  front_lost_ = alone_ = true;
  parts_.recorder.record(
      event::Trouble{"guard", "muster's front process was killed: every worker is ended at once"});
  if (stage_ == Stage::kWaiting) return end_alone();
  if (has_workers()) kill_now(StopReason::kGuardLost);
}

void Job::on_group_gone(const std::vector<event::LeftoverFound>& found) {
  for (const event::LeftoverFound& leftover : found) {
    parts_.recorder.record(leftover);
    if (!leftover.ended) stuck_leftovers_ = true;
  }
  stage_ = Stage::kSettling;
  // Asked for only now: a worker's descendants may write as long as they live, and each of those
  // lines belongs into the file.
  for (int local_rank : std::set<int>(undrained_)) {
    parts_.logs.worker_ended(local_rank, kDrainBound);
  }
  settle_if_quiet();
}

void Job::on_closed(int local_rank) {
  if (hold_) hold_->closed(rank_of(local_rank));
}

void Job::on_drained(int local_rank) {
  undrained_.erase(local_rank);
  settle_if_quiet();
}

void Job::settle_if_quiet() {
  if (stage_ != Stage::kSettling || !undrained_.empty() || hold_ || gathering_early_) return;
  stage_ = Stage::kJudging;
  early_.reset();
  judge_attempt();
}

void Job::judge_attempt() {
  if (recording_pipes_) {
    std::vector<std::string> dumps;
    for (const WorkerPlan& worker : parts_.plan.workers)
      dumps.push_back(
          dump_of(parts_.logs.error_file(worker.local_rank), rank_of(worker.local_rank)));
    remove_recording_pipes(parts_.loop, std::move(dumps));
  }
  gather([this](const std::vector<Evidence>& evidence) { report_outcome(evidence); });
}

void Job::gather(std::function<void(const std::vector<Evidence>&)> on_gathered) {
  const AttemptState* attempt = parts_.recorder.state().current();
  MUST(attempt != nullptr);
  gather_evidence(
      parts_.loop, *attempt, parts_.logs, *pages_, surroundings_, spawn_failed_,
      [this, alive = alive_, on_gathered = std::move(on_gathered)](std::vector<Evidence> evidence) {
        if (!*alive) return;
        for (Evidence& of_worker : evidence)
          of_worker.own_rules = parts_.failure_rules;
        on_gathered(evidence);
      });
}

NodeOutcome Job::outcome_for(const AttemptEnds& ends) const {
  NodeOutcome outcome = outcome_of(parts_.recorder.state(), ends);
  outcome.operations = operations_;
  outcome.step = highest_step(*parts_.recorder.state().current(), *pages_);
  return outcome;
}

void Job::report_outcome(const std::vector<Evidence>& evidence) {
  const AttemptEnds ends = ends_of(parts_.recorder.state(), parts_.logs, evidence, stuck_);
  NodeOutcome outcome = outcome_for(ends);
  group_.reset();
  watchdogs_.reset();
  pages_.reset();
  error_files_.clear();
  for (const Evidence& e : evidence)
    error_files_.emplace(e.rank, e.error_file_text);
  outcome.complete = !outcome.root && !stopped_ && trouble_.empty();
  outcome.left_running = stuck_leftovers_;
  outcome.trouble = trouble_;
  operations_.clear();
  stage_ = Stage::kWaiting;
  if (early_end_) return end(*early_end_);
  if (!alone_) return parts_.link.settled(outcome);
  on_verdict(own_verdict(outcome, ends));
  end_alone();
}

void Job::on_verdict(const AttemptVerdict& verdict) {
  if (stage_ == Stage::kEnded) return;
  if (verdict.early) return record_failure(*verdict.root);
  const bool own_root = verdict.root && verdict.root->node == assignment_.node;
  root_error_file_ = own_root ? error_files_[verdict.root->rank] : "";
  error_files_.clear();
  if (verdict.root) record_failure(*verdict.root);
  for (const event::FailureFound& other : verdict.others)
    record_failure(other);
  if (!verdict.victims.empty() && (several_nodes() || fell_by_cause(verdict))) {
    parts_.recorder.record(event::VictimsFound{verdict.attempt, verdict.victims});
  }
  if (!verdict.collectives.found.empty()) {
    event::CollectivesFound collectives = verdict.collectives;
    collectives.attempt = verdict.attempt;
    parts_.recorder.record(std::move(collectives));
  }
  if (!verdict.no_restart.empty()) {
    parts_.recorder.record(event::RestartDenied{verdict.attempt, verdict.no_restart});
  }
  if (!verdict.restarts) return;
  const AttemptState* attempt = parts_.recorder.state().current();
  const bool took_part = attempt != nullptr && attempt->attempt == verdict.attempt;
  if (took_part && verdict.excluded == attempt->node) {
    parts_.recorder.record(
        event::RestartDenied{verdict.attempt, "the job goes on without this node"});
    return;
  }
  const bool charged = verdict.restart_count > parts_.recorder.state().restarts_used;
  parts_.recorder.record(event::RestartScheduled{verdict.attempt + 1, verdict.restart_count,
                                                 parts_.plan.options.max_restarts, charged,
                                                 verdict.delay_ms});
}

void Job::record_failure(event::FailureFound failure) {
  if (is_known(parts_.recorder.state(), failure)) return;  // told early
  add_known(failure, parts_.recorder.state(), parts_.logs);
  parts_.recorder.record(std::move(failure));
}

void Job::on_job_end(const JobEnd& job_end) {
  if (stage_ == Stage::kEnded) return;
  if (stage_ == Stage::kWaiting) return end(job_end);
  // Nobody ends a job under running workers; should it happen, they go first.
  early_end_ = job_end;
  if (stage_ == Stage::kRunning) begin_stop(SIGTERM, StopReason::kCoordinatorLost);
}

// Stopped without a coordinator to say so.
void Job::end_alone() {
  end({Outcome::kStopped, 128 + (front_lost_ ? SIGKILL : stop_signal_), ""});
}

void Job::end(const JobEnd& how) {
  MUST(!group_);
  stage_ = Stage::kEnded;
  event::JobEnded ended{how.outcome, how.exit_code, how.why, how.kind};
  // Where nobody decides for all nodes, it is known here who asked for it.
  const auto& signal = parts_.recorder.state().stop_signal;
  if (ended.outcome == Outcome::kStopped && ended.kind.empty() && signal && !front_lost_) {
    ended.kind = kind_of_stop(*signal);
  }
  parts_.recorder.record(std::move(ended));
  on_end_(how.exit_code);
}

}  // namespace muster
