// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "supervisor/job/state.h"
#include "supervisor/status/json_out.h"
#include "supervisor/status/row_states.h"

namespace muster {

// The rows of docs/api.md about what went wrong in an attempt, written from the state alone.

// One object, where it stands.
void write_failure(JsonOut& out, const JobView& view, const event::FailureFound& failure);

// Folded by reason; for several nodes as the coordinator told them.
std::vector<event::VictimGroup> victim_groups(const AttemptState& attempt);

// With their keys: "victims", "collectives", "stall" (that of the job now, or null), "stalls" (all
// of an attempt, the oldest first), "saved" (evidence of running workers, likewise).
void write_victims(JsonOut& out, const AttemptState& attempt);
void write_collectives(JsonOut& out, const AttemptState& attempt);
void write_stall_now(JsonOut& out, const JobView& view);
void write_stalls(JsonOut& out, const JobView& view, const AttemptState& attempt);
void write_saved(JsonOut& out, const AttemptState& attempt);

}  // namespace muster
