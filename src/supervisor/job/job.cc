// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/job.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "loop/check.h"
#include "loop/unique_fd.h"
#include "store/server.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/gather.h"
#include "supervisor/job/report.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

namespace {

// How long the end of an attempt waits for pipes that something we could not end keeps open.
constexpr Milliseconds kDrainBound{2'000};

// For trouble of muster's own: no worker's exit code tells it.
constexpr int kExitTrouble = 1;

// A free port of the loopback address, for workers that host the store themselves and so must be
// told a number that nobody holds. (With our own store no port is ever picked before it is bound.)
int pick_free_port() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (!fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.sin_port);
}

std::string error_file_of(const std::vector<Evidence>& evidence, const event::FailureFound& root) {
  for (const Evidence& e : evidence) {
    if (e.local_rank == root.local_rank) return e.error_file_text;
  }
  return "";
}

}  // namespace

Job::Job(const Parts& parts, std::function<void(int)> on_end)
    : parts_(parts), on_end_(std::move(on_end)), stop_signals_(stop_signals(parts.plan.options)) {}

Job::~Job() {
  *alive_ = false;
}

void Job::start() {
  MUST(stage_ == Stage::kIdle);
  start_attempt();
}

int Job::next_master_port() const {
  if (parts_.store != nullptr) return parts_.store->port();
  return parts_.plan.master_port != 0 ? parts_.plan.master_port : pick_free_port();
}

void Job::start_attempt() {
  const LaunchPlan& plan = parts_.plan;
  stage_ = Stage::kRunning;
  undrained_.clear();
  spawn_failed_.reset();
  stuck_.reset();
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

  int master_port = next_master_port();
  event::AttemptStarted started;
  started.attempt = started.restart_count = attempt_;
  started.world_size = static_cast<int>(plan.workers.size());
  started.master_addr = plan.master_addr;
  started.master_port = master_port;
  started.nodes = {{0, plan.host, 0, started.world_size}};
  parts_.recorder.record(started);

  WorkerGroup::Limits limits;
  limits.term_to_kill = std::chrono::duration_cast<Milliseconds>(plan.options.shutdown_timeout);
  group_ = std::make_unique<WorkerGroup>(
      parts_.loop, limits,
      WorkerGroup::Callbacks{
          [this](const WorkerEnd& end) { on_worker_exit(end); },
          [this](const SentSignal& sent) {
            parts_.recorder.record(event::SignalSent{attempt_, sent.local_rank, sent.pid,
                                                     sent.signal, sent.to_group, sent.reason});
          },
          [this](const std::vector<event::LeftoverFound>& found) { on_group_gone(found); }});

  Result<void> begun = parts_.logs.begin_attempt(attempt_);
  if (!begun) {
    parts_.recorder.trouble("logs", begun.error().message);
    group_->seal();
    no_attempt_ = true;
    stage_ = Stage::kStopping;
    return;
  }
  for (const WorkerPlan& worker : plan.workers) {
    Result<void> started = start_worker(worker, master_port);
    if (started) continue;
    begin_stop(SIGTERM, StopReason::kFailure);
    break;
  }
  group_->seal();
}

Result<void> Job::start_worker(const WorkerPlan& worker, int master_port) {
  const int local_rank = worker.local_rank;
  auto fail = [&](const Error& error) {
    spawn_failed_ = event::SpawnFailed{attempt_, local_rank, local_rank, error.code, error.message};
    parts_.recorder.record(*spawn_failed_);
    return Result<void>(error);
  };
  auto stdio = parts_.logs.open_worker(local_rank);
  if (!stdio) return fail(Error{kNotExecuted, stdio.error().message});

  SpawnSpec spec;
  spec.executable = worker.executable;
  spec.argv = worker.argv;
  spec.environment = environment_for(
      parts_.plan, worker, AttemptFacts{attempt_, master_port, parts_.logs.error_file(local_rank)});
  if (std::string path = watchdogs_->timer_path(); !path.empty()) {
    std::erase_if(spec.environment, [](const std::string& entry) {
      return entry.starts_with("TORCHELASTIC_TIMER_FILE=");
    });
    spec.environment.push_back("TORCHELASTIC_TIMER_FILE=" + path);
  }
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
  parts_.recorder.record(event::WorkerSpawned{attempt_, local_rank, local_rank, *pid});
  parts_.logs.worker_started(local_rank, *pid);
  watchdogs_->worker_started(local_rank, *pid);
  return {};
}

void Job::on_first_output(int local_rank, Stream stream) {
  parts_.recorder.record(event::FirstOutput{attempt_, local_rank, stream});
}

void Job::on_timer_expired(int local_rank, const TimerRequest& request) {
  parts_.recorder.record(
      event::Trouble{"watchdog", "rank " + std::to_string(local_rank) + " (pid " +
                                     std::to_string(request.pid) + ") did not renew its timer '" +
                                     request.scope_id + "': sent " + signal_name(request.signal)});
  ::kill(request.pid, request.signal);
}

// torchrun ends such a job with exit code 0; here it is a failure like any other, except that the
// culprit is still alive and cannot be ended by us.
void Job::on_stuck(int local_rank, int pid, Milliseconds duration) {
  if (stage_ != Stage::kRunning) return;
  event::FailureFound found;
  found.attempt = attempt_;
  found.rank = local_rank;
  found.local_rank = local_rank;
  found.pid = pid;
  found.kind = "hung";
  found.exit_code = kExitTrouble;
  found.message = "stuck in uninterruptible sleep for " +
                  std::to_string((duration.count() + 500) / 1000) + " s (wait channel " +
                  read_wait_channel(pid) + ")";
  found.can_heal = false;
  stuck_ = std::move(found);
  begin_stop(SIGTERM, StopReason::kFailure);
}

void Job::on_worker_exit(const WorkerEnd& end) {
  watchdogs_->worker_ended(end.local_rank);
  parts_.recorder.record(event::WorkerExited{attempt_, end.local_rank, end.local_rank, end.pid,
                                             end.wait_status, end.max_rss_kib});
  if (stage_ != Stage::kRunning) return;
  if (end.wait_status == 0) return watch_for_uneven_end();
  begin_stop(SIGTERM, StopReason::kFailure);
}

// A rank that returned early and others that wait for it look like a hang: say so, once.
void Job::watch_for_uneven_end() {
  uneven_timer_ = Timer::start(parts_.loop, Milliseconds(kUnevenEndUs / 1000), [this] {
    if (auto line = uneven_end_line(parts_.recorder.state(), parts_.recorder.now_us())) {
      parts_.logs.say("muster: " + *line);
    }
  });
}

void Job::begin_stop(int signal, StopReason reason) {
  stage_ = Stage::kStopping;
  group_->stop(signal, reason);
}

void Job::on_signal(event::SignalReceived signal) {
  if (stage_ == Stage::kIdle || stage_ == Stage::kEnded) return;
  const bool stops =
      std::find(stop_signals_.begin(), stop_signals_.end(), signal.signal) != stop_signals_.end();
  signal.forwarded = !stops;
  parts_.recorder.record(signal);
  if (!stops) {
    if (stage_ == Stage::kRunning) group_->forward(signal.signal);
    return;
  }
  if (group_settled()) {
    late_signal_ = signal.signal;
    return;
  }
  if (signal.signal == SIGINT) ++interrupts_;
  if (stop_signal_ == 0) stop_signal_ = signal.signal;
  if (signal.signal == SIGINT && interrupts_ > 1) {
    group_->kill_now(StopReason::kSignal);
    return;
  }
  begin_stop(signal.signal, StopReason::kSignal);
}

void Job::on_front_lost() {
  if (stage_ == Stage::kIdle || stage_ == Stage::kEnded) return;
  front_lost_ = true;
  parts_.recorder.record(
      event::Trouble{"guard", "muster's front process was killed: every worker is ended at once"});
  if (group_settled()) return;
  stage_ = Stage::kStopping;
  group_->kill_now(StopReason::kGuardLost);
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

void Job::on_drained(int local_rank) {
  undrained_.erase(local_rank);
  settle_if_quiet();
}

void Job::settle_if_quiet() {
  if (stage_ != Stage::kSettling || !undrained_.empty()) return;
  stage_ = Stage::kJudging;
  judge_attempt();
}

void Job::judge_attempt() {
  const AttemptState* attempt = parts_.recorder.state().current();
  MUST(attempt != nullptr);
  gather_evidence(parts_.loop, *attempt, parts_.logs, spawn_failed_,
                  [this, alive = alive_](const std::vector<Evidence>& evidence) {
                    if (!*alive) return;
                    auto verdict = judge(evidence);
                    root_error_file_ = verdict ? error_file_of(evidence, verdict->root) : "";
                    conclude(std::move(verdict));
                  });
}

void Job::conclude(std::optional<Verdict> verdict) {
  group_.reset();
  watchdogs_.reset();
  if (stuck_) {
    Verdict stuck{*stuck_, {}, {}};
    if (verdict) stuck.others.push_back(verdict->root);
    verdict = std::move(stuck);
  }
  if (!verdict) return end_without_failure();

  parts_.recorder.record(verdict->root);
  for (const event::FailureFound& other : verdict->others)
    parts_.recorder.record(other);
  const Options& options = parts_.plan.options;
  RestartDecision decision = decide_restart(
      verdict->root,
      RestartBudget{attempt_, options.max_restarts, options.restart_always, stuck_leftovers_});
  if (!decision.restart) return end(Outcome::kFailed, verdict->root.exit_code);
  // Whoever asked for an end gets it, although a restart was due.
  if (stop_signal_ == 0) stop_signal_ = late_signal_;
  if (stop_signal_ != 0 || front_lost_) return end_without_failure();
  ++attempt_;
  last_exit_code_ = verdict->root.exit_code;
  parts_.recorder.record(event::RestartScheduled{attempt_, attempt_, options.max_restarts});
  if (parts_.store != nullptr) parts_.store->reset();
  start_attempt();
}

void Job::end_without_failure() {
  if (front_lost_) return end(Outcome::kStopped, 128 + SIGKILL);
  if (stop_signal_ != 0) return end(Outcome::kStopped, 128 + stop_signal_);
  if (no_attempt_) return end(Outcome::kFailed, last_exit_code_);
  if (stuck_leftovers_) return end(Outcome::kFailed, kExitTrouble);
  end(Outcome::kSucceeded, 0);
}

void Job::end(Outcome outcome, int exit_code) {
  stage_ = Stage::kEnded;
  uneven_timer_.reset();
  parts_.recorder.record(event::JobEnded{outcome, exit_code, ""});
  on_end_(exit_code);
}

}  // namespace muster
