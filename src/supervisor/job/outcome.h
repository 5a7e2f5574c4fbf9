// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "supervisor/diagnosis/judge.h"
#include "supervisor/evidence/surroundings.h"
#include "supervisor/job/state.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/rendezvous/round.h"

namespace muster {

// How the workers of this node ended: what judge() says of the evidence, each with its host, its
// times and its logs, and those of which there is no evidence. `stuck` has failed while it lives.
AttemptEnds ends_of(const JobState& state, const JobLogs& logs, std::span<const Evidence> evidence,
                    const std::optional<event::FailureFound>& stuck);

// What this node reports of an attempt; its victims are folded by reason. Whether it is complete
// and what is left running is the caller's to say.
NodeOutcome outcome_of(const JobState& state, const AttemptEnds& ends);

// The verdict where nobody else can be asked: over this node's workers alone.
AttemptVerdict own_verdict(const NodeOutcome& outcome, AttemptEnds ends);

// The ranks of this node that were stopped, folded by how they ended.
std::vector<event::VictimGroup> victims_of(const AttemptState& attempt);

// Adds what only the node knows on which it happened.
void complete_failure(event::FailureFound& failure, const JobState& state, const JobLogs& logs);

// Adds to one that was decided from others' failures alone what is known here of its rank.
void add_known(event::FailureFound& failure, const JobState& state, const JobLogs& logs);

// Of a failure whose evidence is not gathered yet: judged by its wait status and by what could be
// noted at once.
event::FailureFound preliminary_failure(const JobState& state, const RankState& rank,
                                        const Surroundings& surroundings);

}  // namespace muster
