// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/status/status_json.h"
#include "supervisor/status/store_waits.h"

namespace muster {

// What somebody who is called at night should look at first, a line each: that the job has stalled
// and who differs, long waits in the store and who is missing there, who keeps whom waiting in an
// operation, ranks that fell silent while others speak, a part that has finished while the rest
// runs, lost nodes, muster's own troubles. Empty for a job that is well.
inline constexpr size_t kMaxAttention = 8;
std::vector<std::string> attention_lines(const StatusFacts& facts, const StoreWaits& waits,
                                         const event::CollectivesFound& collectives);

}  // namespace muster
