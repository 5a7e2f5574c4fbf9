// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Single characters to insert, remove, replace or swap with their neighbour to get from one word
// to the other.
size_t edit_distance(std::string_view from, std::string_view to);

// The candidate that `word` was probably meant to be: a slip or two away from it or from its
// beginning. Empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace muster
