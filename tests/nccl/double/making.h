// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <span>
#include <vector>

#include "comm.h"

namespace doubles {

// The init of a communicator whose rank and ranks are set: the roots, the checks of versions and
// GPUs, and a meeting of all.
ncclResult_t init_comm(ncclComm& comm, std::span<const ncclUniqueId> ids, Fd listener,
                       const PeerInfo& own);
// Its half that does not wait: where it listens, and what it tells of itself.
ncclResult_t begin_listening(const ncclComm& comm, Fd* listener, PeerInfo* own);

// The part of split and shrink in which the parent's `members` meet; then those who told the same
// color (none below 0) are one communicator, by key, then by rank.
ncclResult_t init_child(ncclComm& parent, const std::vector<int>& members, int turn, int color,
                        int key, ncclComm* child);

// Waits until nothing of it is on the device any more.
ncclResult_t drain(ncclComm& comm);

// `config` or the defaults (`otherwise`) into `comm`.
ncclResult_t apply_config(ncclComm& comm, const ncclConfig_t* config, bool otherwise);

}  // namespace doubles
