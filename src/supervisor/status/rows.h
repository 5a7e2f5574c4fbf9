// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "supervisor/job/state.h"
#include "supervisor/status/json_out.h"
#include "supervisor/status/row_states.h"

namespace muster {

struct RankSample;

// The rows of docs/api.md, written from the state alone. Each function appends one JSON object, so
// that whoever composes an answer or a message says only where it stands:
//   out.key("ranks"); out.begin_array();
//   for (const RankState& rank : attempt.ranks) write_rank(out, view, attempt, rank);
//   out.end_array();

// A node: as it joined the coordinator, with its part in the current attempt. Where nobody joined
// (one node, or an agent's view of itself) there is only the part, and before the first attempt
// neither.
struct NodeRow {
  const NodeState* node = nullptr;
  const event::NodeSpan* span = nullptr;
};
std::vector<NodeRow> node_rows(const JobView& view);

void write_job(JsonOut& out, const JobView& view);
void write_node(JsonOut& out, const JobView& view, const NodeRow& row);
void write_attempt(JsonOut& out, const JobView& view, const AttemptState& attempt);
void write_rank(JsonOut& out, const JobView& view, const AttemptState& attempt,
                const RankState& rank);
// "values": [[name, number], ...].
void write_values(JsonOut& out, const RankSample& sample);
void write_sample(JsonOut& out, const RankSample& sample);

}  // namespace muster
