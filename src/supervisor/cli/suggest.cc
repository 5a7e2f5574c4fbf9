// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/suggest.h"

#include <algorithm>

namespace muster {
namespace {

// Longer words are no slips of anything.
constexpr size_t kMaxWord = 64;

}  // namespace

size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> before(to.size() + 1);  // two rows up
  std::vector<size_t> above(to.size() + 1);
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j)
    above[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      size_t replaced = above[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[to.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kMaxWord) return {};
  std::string best;
  size_t slips = std::max<size_t>(word.size() > 3 ? 2 : 1, word.size() / 3);
  size_t best_cost = slips + 1;
  for (const std::string& candidate : candidates) {
    size_t cost = edit_distance(word, candidate);
    if (word.size() > 3 && candidate.size() > word.size()) {
      // "--nprocs" means "--nproc-per-node", of which it is a slip of the beginning.
      std::string_view beginning = std::string_view(candidate).substr(0, word.size());
      cost = std::min(cost, edit_distance(word, beginning) + 1);
    }
    if (cost < best_cost) {
      best_cost = cost;
      best = candidate;
    }
  }
  return best;
}

}  // namespace muster
