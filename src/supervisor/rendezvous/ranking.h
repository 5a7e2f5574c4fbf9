// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/rendezvous/roster.h"

namespace muster {

// Who takes part in an attempt and which ranks they get. Pure.

// At most `max` of the waiting nodes, in the order of their GROUP_RANK:
// - If every one of them was given a --node-rank, by it. (The ranks may have gaps, GROUP_RANK has
//   none.)
// - Otherwise a node that had a place in the last attempt keeps it, newcomers take the vacated ones
//   in the order in which they came (the host's node first) and then the end of the row. Nodes
//   close up where a place stays empty.
// When there are more than `max`, the host and those with a place go first, then whoever came
// first.
std::vector<Node*> choose_members(Roster& roster, const std::string& host_id, int max);

// The parts of the members in one attempt; the attempt's number, restart count and master are still
// to be filled in. Global ranks are contiguous in the order of the members; ranks within a role are
// counted over the members of that role.
std::vector<Assignment> number_ranks(const std::vector<Node*>& members);

// Every node with its ranks, as the record shows them.
std::vector<event::NodeSpan> spans_of(const std::vector<Node*>& members,
                                      const std::vector<Assignment>& assignments);

// "nodes have different numbers of workers: 8 on node-a and 2 more, 4 on node-b"; "" if all have
// the same.
std::string uneven_text(const std::vector<Node*>& members);

}  // namespace muster
