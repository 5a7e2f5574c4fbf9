// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/hung_failure.h"

#include "supervisor/stacks/stack_groups.h"

namespace muster {

namespace {

constexpr size_t kMaxExcerpt = 12;  // lines of like stacks
// No exit code of a worker tells it.
constexpr int kExitHung = 1;

}  // namespace

event::FailureFound hung_failure(const JobState& state, const Stall& stall, bool can_heal,
                                 const std::vector<event::EvidenceSaved>& saved) {
  event::FailureFound found;
  found.kind = "hung";
  found.message = stall.text;
  found.exit_code = kExitHung;
  found.can_heal = can_heal;
  found.rank = stall.suspects.empty() ? -1 : stall.suspects.front();
  const AttemptState* attempt = state.current();
  if (attempt == nullptr) return found;
  found.attempt = attempt->attempt;
  found.host = attempt->host_of(found.rank);
  if (const RankState* rank = attempt->find(found.rank)) {
    found.local_rank = rank->local_rank;
    found.node = rank->node;
    found.pid = rank->pid;
    found.ran_us = state.last_us - rank->started_us;
  }
  found.excerpt = merged_groups(saved);
  if (found.excerpt.size() > kMaxExcerpt) found.excerpt.resize(kMaxExcerpt);
  for (const event::EvidenceSaved& one : saved) {
    if (!one.folder.empty() && found.evidence.size() < event::kMaxEvidenceLines)
      found.evidence.push_back("stacks of its workers on " + one.host + " in " + one.folder);
  }
  if (!found.excerpt.empty()) found.excerpt_source = "stacks";
  return found;
}

}  // namespace muster
