// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace muster {

// "rank 3", "ranks 0-2, 5": sorted, doubles dropped.
std::string rank_ranges(std::vector<int> ranks);

}  // namespace muster
