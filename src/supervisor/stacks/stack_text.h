// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/stacks/thread_view.h"

namespace muster {

// The file of one rank. `head` is its first line.
std::string rank_text(const RankView& view, const std::string& head);

// What a rank is doing, in one line that is equal for ranks that do the same: the innermost calls
// of its main thread, and how it is kept if it is not simply asleep. "" if nothing is known.
std::string activity(const RankView& view);

}  // namespace muster
