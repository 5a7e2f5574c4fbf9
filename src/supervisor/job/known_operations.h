// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "loop/unique_fd.h"
#include "supervisor/diagnosis/collectives.h"
#include "supervisor/job/state.h"
#include "supervisor/workers/worker_pages.h"

namespace muster {

// What the pages of this node's workers say now, for find_collectives(). Some 100 us for each
// communicator that is in use, nothing that could block.
std::vector<KnownRank> known_operations(const AttemptState& attempt, const WorkerPages& pages);

// The highest step that they tell of, -1 for none.
int64_t highest_step(const AttemptState& attempt, const WorkerPages& pages);

// The clock of the pages.
int64_t page_now_ns();

// Null: it says nothing.
std::shared_ptr<const RankOperations> operations_in(const UniqueFd& page);

// Whether a worker that is dead ended after an operation of its had failed, and none went well
// since.
bool ended_in_broken_operation(const UniqueFd& page);

}  // namespace muster
