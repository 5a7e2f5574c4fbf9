// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "nccl/core/backend.h"
#include "nccl/cuda/tables.h"

// How the ranks of a new NCCL communicator find each other: ids that NCCL makes, handed on through
// the communicator's own corner of the store. Rank 0 says how many there are and of which kind; the
// others follow it, so that those who join a grown communicator need not know whether it was grown
// by NCCL or made anew.
//
//   nccl/id/0        rank 0: "<kind> <ids> <128 bytes>"; kind "new" or "grown", or "failed <why>"
//   nccl/id/<root>   the other roots' ids: 128 bytes
namespace muster::comm::detail {

struct Ids {
  bool grown = false;  // join with ncclCommGrow
  std::vector<ncclUniqueId> ids{};
};

// Roots are spread evenly, so that those of a node are not all asked by the whole world.
int root_rank(int root, int roots, int size);

// Makes the ids that this rank has to make and waits for the others. kTimeout names whose is
// missing.
Result<Ids> exchange_ids(const NcclTable& nccl, const BackendPlan& plan);

// Rank 0 of a communicator that NCCL grows.
Result<void> publish_grown(const BackendPlan& plan, const ncclUniqueId& id);
// Rank 0 cannot: nobody need wait for it until the deadline.
void publish_failure(const BackendPlan& plan, const Error& error);

}  // namespace muster::comm::detail
