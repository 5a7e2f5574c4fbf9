// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/outcome.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/report.h"

namespace muster {

std::vector<event::VictimGroup> victims_of(const AttemptState& attempt) {
  std::map<std::string, std::vector<int>> ranks_by_reason;
  for (const RankState* rank : ranks_stopped_by_us(attempt)) {
    if (rank->node == attempt.node) ranks_by_reason[victim_reason(*rank)].push_back(rank->rank);
  }
  std::vector<event::VictimGroup> groups;
  groups.reserve(ranks_by_reason.size());
  for (const auto& [reason, ranks] : ranks_by_reason)
    groups.push_back({format_ranges(ranks), reason});
  return groups;
}

namespace {

event::FailureFound stopped_rank(const AttemptState& attempt, const RankState& rank) {
  event::FailureFound stopped;
  stopped.attempt = attempt.attempt;
  stopped.rank = rank.rank;
  stopped.local_rank = rank.local_rank;
  stopped.pid = rank.pid;
  return stopped;
}

// What is beyond the limit of a report leaves the list, victims before others and the last first.
std::vector<event::FailureFound> keep_first_causes(std::vector<event::FailureFound>& failures) {
  std::vector<event::FailureFound> rest;
  for (bool only_victims : {true, false}) {
    for (size_t i = failures.size(); i > 0 && failures.size() > 1 + kMaxOtherCauses; --i) {
      const auto at = failures.begin() + static_cast<std::ptrdiff_t>(i - 1);
      if (only_victims && !shows_victim(*at)) continue;
      rest.push_back(std::move(*at));
      failures.erase(at);
    }
  }
  return rest;
}

void add_groups(std::vector<event::VictimGroup>& groups,
                const std::vector<event::FailureFound>& failures) {
  std::map<std::string, std::vector<int>> ranks_by_reason;
  for (const event::FailureFound& failure : failures) {
    const WaitStatus status{failure.signal, failure.exit_code, false};
    ranks_by_reason[shows_victim(failure) ? victim_text(failure) : describe_end(status)].push_back(
        failure.rank);
  }
  for (const auto& [reason, ranks] : ranks_by_reason)
    groups.push_back({format_ranges(ranks), reason});
}

}  // namespace

void complete_failure(event::FailureFound& failure, const JobState& state, const JobLogs& logs) {
  const AttemptState* attempt = state.current();
  const RankState* rank = attempt ? attempt->find(failure.rank) : nullptr;
  failure.host = state.job.host;
  failure.stdout_log = logs.log_file(failure.local_rank, Stream::kStdout);
  failure.stderr_log = logs.log_file(failure.local_rank, Stream::kStderr);
  if (rank == nullptr) return;
  failure.node = rank->node;
  // One that is still there has been running until now.
  const int64_t end_us = rank->ended_us > 0 ? rank->ended_us : state.last_us;
  if (failure.pid != 0) failure.ran_us = end_us - rank->started_us;
  failure.time_us = std::chrono::duration_cast<std::chrono::microseconds>(
                        (state.started + std::chrono::microseconds(end_us)).time_since_epoch())
                        .count();
}

void add_known(event::FailureFound& failure, const JobState& state, const JobLogs& logs) {
  const AttemptState* attempt = state.current();
  const RankState* rank =
      attempt && attempt->attempt == failure.attempt ? attempt->find(failure.rank) : nullptr;
  if (rank == nullptr || failure.pid != 0 || rank->phase == RankPhase::kSpawnFailed) return;
  failure.pid = rank->pid;
  failure.local_rank = rank->local_rank;
  failure.node = rank->node;
  if (failure.host.empty()) failure.host = attempt->host_of(rank->rank);
  if (rank->phase == RankPhase::kExited) failure.ran_us = rank->ended_us - rank->started_us;
  if (rank->node != attempt->node) return;
  failure.stdout_log = logs.log_file(failure.local_rank, Stream::kStdout);
  failure.stderr_log = logs.log_file(failure.local_rank, Stream::kStderr);
}

AttemptEnds ends_of(const JobState& state, const JobLogs& logs, std::span<const Evidence> evidence,
                    const std::optional<event::FailureFound>& stuck) {
  AttemptEnds ends = judge(evidence);
  auto is_stuck = [&](const event::FailureFound& one) { return stuck && one.rank == stuck->rank; };
  std::erase_if(ends.failures, is_stuck);
  std::erase_if(ends.stopped, is_stuck);
  if (stuck) ends.failures.insert(ends.failures.begin(), *stuck);
  auto known = [&](int rank) {
    auto same = [rank](const event::FailureFound& one) { return one.rank == rank; };
    return std::any_of(ends.failures.begin(), ends.failures.end(), same) ||
           std::any_of(ends.stopped.begin(), ends.stopped.end(), same);
  };
  const AttemptState& attempt = *state.current();
  for (const RankState& rank : attempt.ranks) {
    if (rank.node != attempt.node || rank.pid == 0 || known(rank.rank)) continue;
    const bool well = rank.phase == RankPhase::kExited && rank.wait_status == 0;
    if (well && rank.stopped_for == StopReason::kNone) {
      ends.finished.push_back(rank.rank);
    } else {
      ends.stopped.push_back(stopped_rank(attempt, rank));
    }
  }
  ends.still_running = static_cast<int>(ends.stopped.size());
  for (event::FailureFound& failure : ends.failures)
    complete_failure(failure, state, logs);
  for (event::FailureFound& stopped : ends.stopped)
    complete_failure(stopped, state, logs);
  return ends;
}

NodeOutcome outcome_of(const JobState& state, const AttemptEnds& ends) {
  NodeOutcome outcome;
  const AttemptState& attempt = *state.current();
  outcome.attempt = attempt.attempt;
  outcome.victims = victims_of(attempt);
  outcome.finished = format_ranges(ends.finished);
  outcome.suspects = ends.stopped;
  // Those that had shown something first.
  std::stable_partition(outcome.suspects.begin(), outcome.suspects.end(),
                        [](const event::FailureFound& one) { return !one.kind.empty(); });
  if (outcome.suspects.size() > kMaxSuspects) outcome.suspects.resize(kMaxSuspects);
  std::vector<event::FailureFound> failures = ends.failures;
  const std::vector<event::FailureFound> rest = keep_first_causes(failures);
  add_groups(outcome.victims, rest);
  std::vector<int> more;
  more.reserve(rest.size());
  for (const event::FailureFound& failure : rest)
    more.push_back(failure.rank);
  outcome.more_failed = format_ranges(std::move(more));
  if (failures.empty()) return outcome;
  outcome.root = failures.front();
  outcome.others.assign(failures.begin() + 1, failures.end());
  return outcome;
}

AttemptVerdict own_verdict(const NodeOutcome& outcome, AttemptEnds ends) {
  AttemptVerdict verdict;
  verdict.attempt = outcome.attempt;
  verdict.collectives = find_collectives(outcome.operations, kHangAtEndUs);
  Causes causes = find_causes(std::move(ends));
  if (causes.independent.empty()) return verdict;
  verdict.root = causes.independent.front();
  verdict.others.assign(causes.independent.begin() + 1, causes.independent.end());
  verdict.others.insert(verdict.others.end(), causes.victims.begin(), causes.victims.end());
  if (verdict.others.size() > kMaxOtherCauses) verdict.others.resize(kMaxOtherCauses);
  return verdict;
}

event::FailureFound preliminary_failure(const JobState& state, const RankState& rank,
                                        const Surroundings& surroundings) {
  Evidence evidence;
  evidence.attempt = state.current()->attempt;
  evidence.rank = rank.rank;
  evidence.local_rank = rank.local_rank;
  evidence.pid = rank.pid;
  evidence.wait_status = rank.wait_status;
  surroundings.fill(evidence);
  return diagnose(evidence);
}

}  // namespace muster
