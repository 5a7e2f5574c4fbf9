// SPDX-License-Identifier: Apache-2.0
// How a job ends: what its workers left is gathered and judged, and the verdict on an attempt is
// recorded.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "loop/check.h"
#include "supervisor/diagnosis/stop_sender.h"
#include "supervisor/job/gather.h"
#include "supervisor/job/job.h"
#include "supervisor/job/known_operations.h"
#include "supervisor/job/outcome.h"
#include "supervisor/job/recording.h"

namespace muster {

namespace {

// How long the end of an attempt waits for pipes that something we could not end keeps open.
constexpr Milliseconds kDrainBound{2'000};

// Of one node the ranks themselves show who was stopped, but not who only fell with another.
bool fell_by_cause(const AttemptVerdict& verdict) {
  return std::any_of(verdict.others.begin(), verdict.others.end(), shows_victim);
}

bool is_known(const JobState& state, const event::FailureFound& failure) {
  const AttemptState* attempt = state.current();
  if (attempt == nullptr || attempt->attempt != failure.attempt || !attempt->root_cause)
    return false;
  return failure.rank >= 0 && failure.rank == attempt->root_cause->rank;
}

}  // namespace

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
  unjudged_ = own_verdict(outcome, ends);
  if (early_end_) return end(*early_end_);
  if (!alone_) return parts_.link.settled(outcome);
  on_verdict(own_verdict(outcome, ends));
  end_alone();
}

void Job::on_verdict(const AttemptVerdict& verdict) {
  if (stage_ == Stage::kEnded) return;
  if (verdict.early) return record_failure(*verdict.root);
  unjudged_.reset();
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

// The coordinator was lost before it judged: of what failed here at least the own cause is told.
void Job::record_unjudged() {
  const std::optional<AttemptVerdict> left = std::exchange(unjudged_, std::nullopt);
  if (left && left->root && !shows_victim(*left->root)) record_failure(*left->root);
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
  record_unjudged();
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
