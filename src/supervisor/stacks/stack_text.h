// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/stacks/thread_view.h"

namespace muster {

// The file of one rank. `head` is its first line.
std::string rank_text(const RankView& view, const std::string& head);

// What a rank is doing, in one line that is equal for ranks that do the same: the innermost calls
// of its main thread that say something. "" if nothing is known.
std::string activity(const RankView& view);

struct RankActivity {
  int rank = 0;
  std::string text;
};

// Most lines, and the longest of them, so that an event stays small.
inline constexpr size_t kMaxGroups = 16;
inline constexpr size_t kMaxGroupText = 400;

// Ranks that do the same, a line each, the largest group first: "ranks 0-2: recv < all_reduce <
// main". A group that is smaller than the one that most ranks are in says that it differs.
std::vector<std::string> group_lines(const std::vector<RankActivity>& ranks);

}  // namespace muster
