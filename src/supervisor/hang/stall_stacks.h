// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "supervisor/hang/stall.h"
#include "supervisor/job/state.h"

namespace muster {

// What a stall is when the stacks of its workers are known. Whom nothing else tells apart they may:
// who is elsewhere than most is the suspect then. Pure.
Stall told_by_stacks(Stall stall, const AttemptState& attempt,
                     const std::vector<event::EvidenceSaved>& saved);

}  // namespace muster
