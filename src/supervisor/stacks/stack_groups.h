// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/job/event.h"

namespace muster {

struct RankActivity {
  int rank = 0;
  std::string text;
};

// Most lines, and the longest of them, so that an event stays small.
inline constexpr size_t kMaxGroups = 16;
// The text of ranks of which nothing is known.
inline constexpr std::string_view kUnseen = "nothing could be seen";
inline constexpr size_t kMaxGroupText = 400;

// Ranks that do the same, a line each, the largest group first: "ranks 0-2: recv < all_reduce <
// main". A group that is smaller than the one that most ranks are in says that it differs.
std::vector<std::string> group_lines(const std::vector<RankActivity>& ranks);

// The groups of all nodes, made of those of each.
std::vector<std::string> merged_groups(const std::vector<event::EvidenceSaved>& saved);

// Who is elsewhere than most of all nodes' ranks, and where the first of them is. Empty if there is
// no such majority; a rank that could not be seen is not among them.
struct OddRanks {
  std::vector<int> ranks;
  std::string text;
};
OddRanks odd_ranks(const std::vector<event::EvidenceSaved>& saved);

}  // namespace muster
