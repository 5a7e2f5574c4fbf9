// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/hang/stall.h"
#include "supervisor/job/state.h"

namespace muster {

// The failure that a stall is made into: of the first suspect, of the job as a whole (rank -1) if
// there is none. `saved`: what was saved of it on each node. Pure.
event::FailureFound hung_failure(const JobState& state, const Stall& stall, bool can_heal,
                                 const std::vector<event::EvidenceSaved>& saved);

}  // namespace muster
