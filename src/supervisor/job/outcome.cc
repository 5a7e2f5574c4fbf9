// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/outcome.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "supervisor/cli/ranges.h"
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

NodeOutcome outcome_of(const JobState& state, const JobLogs& logs,
                       const std::optional<Verdict>& verdict) {
  NodeOutcome outcome;
  const AttemptState& attempt = *state.current();
  outcome.attempt = attempt.attempt;
  outcome.victims = victims_of(attempt);
  if (!verdict) return outcome;
  outcome.root = verdict->root;
  outcome.others = verdict->others;
  complete_failure(*outcome.root, state, logs);
  for (event::FailureFound& other : outcome.others)
    complete_failure(other, state, logs);
  return outcome;
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
