// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/evidence/surroundings.h"
#include "supervisor/job/state.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/rendezvous/round.h"

namespace muster {

// What this node reports of an attempt: the verdict over its own evidence, each failure with its
// host, its times and its logs, and its victims folded by reason. Whether it is complete and what
// is left running is the caller's to say.
NodeOutcome outcome_of(const JobState& state, const JobLogs& logs,
                       const std::optional<Verdict>& verdict);

// The ranks of this node that were stopped, folded by how they ended.
std::vector<event::VictimGroup> victims_of(const AttemptState& attempt);

// Adds what only the node knows on which it happened.
void complete_failure(event::FailureFound& failure, const JobState& state, const JobLogs& logs);

// Of a failure whose evidence is not gathered yet: judged by its wait status and by what could be
// noted at once.
event::FailureFound preliminary_failure(const JobState& state, const RankState& rank,
                                        const Surroundings& surroundings);

}  // namespace muster
