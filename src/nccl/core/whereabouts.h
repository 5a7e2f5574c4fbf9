// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nccl/core/backend.h"

namespace muster::comm::detail {

// Where the other members are when the time of an operation is over. Each that times out says in
// the store what it is in, and listens for a moment what the others say, so that also without
// checked mode an error tells "ranks 0 and 2 were in it too; rank 1 was in barrier #7".
struct Whereabouts {
  std::string text{};          // "" where nothing can be known
  std::vector<int> unheard{};  // ranks of the communicator that have said nothing
};

// The moment: members whose time is over at about the same time hear of each other.
constexpr Duration kListening{150};

// `operation`: "all_reduce #7", "recv #3 from rank 1". Once in a communicator's life. Listens until
// then, takes what the store needs to answer besides, and never fails.
Whereabouts ask_whereabouts(const BackendPlan& plan, const std::string& operation, Deadline until);

// Only says where this rank was: one whose operation was ended by a lost peer, or that is to ask
// later. Does not wait.
void tell_whereabouts(const BackendPlan& plan, const std::string& operation);

}  // namespace muster::comm::detail
