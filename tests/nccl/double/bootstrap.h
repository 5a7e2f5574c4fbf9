// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <span>
#include <vector>

#include "links.h"

namespace doubles {

// Begins a root: a thread of this process that listens at the address in the id until all ranks of
// one communicator have come and have been told of each other. As with NCCL, it goes with this
// process, whoever uses the id.
ncclResult_t make_unique_id(ncclUniqueId* id);

// Tells the roots of `own` and learns of all ranks. With several roots each looks after a part of
// the ranks, and everybody asks all of them.
ncclResult_t gather_peers(std::span<const ncclUniqueId> ids, int rank, int ranks,
                          const PeerInfo& own, std::vector<PeerInfo>* all, const StopSignal& stop);

// What a stopped or broken exchange means, with a warning.
ncclResult_t result_of(Outcome outcome, const char* where);

}  // namespace doubles
