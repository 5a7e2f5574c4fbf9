// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/rank_ranges.h"

#include <set>
#include <utility>

#include "supervisor/cli/ranges.h"

namespace muster {

std::string rank_ranges(std::vector<int> ranks) {
  const bool one = std::set<int>(ranks.begin(), ranks.end()).size() == 1;
  return (one ? "rank " : "ranks ") + format_ranges(std::move(ranks), ", ");
}

}  // namespace muster
