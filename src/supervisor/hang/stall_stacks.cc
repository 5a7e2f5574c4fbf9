// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/stall_stacks.h"

#include <algorithm>
#include <iterator>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/rank_ranges.h"
#include "supervisor/stacks/stack_groups.h"

namespace muster {

namespace {

constexpr size_t kMaxRanges = 80;
constexpr size_t kMaxWhere = 240;  // what stays of a text of kMaxStallText

// " on node-b" of ranks of one node among several.
std::string on_host(const AttemptState& attempt, const std::vector<int>& ranks) {
  if (attempt.node_count < 2) return "";
  const std::string host = attempt.host_of(ranks.front());
  const bool one = std::all_of(ranks.begin(), ranks.end(),
                               [&](int rank) { return attempt.host_of(rank) == host; });
  return one && !host.empty() ? " on " + clean_line(host) : "";
}

// The calls that it waits in; those further out are in the excerpt of a failure, and in files.
std::string innermost(const std::string& calls) {
  return cut_line(clean_line(calls.substr(0, calls.find(" < ..."))), kMaxWhere);
}

}  // namespace

Stall told_by_stacks(Stall stall, const AttemptState& attempt,
                     const std::vector<event::EvidenceSaved>& saved) {
  if (!stall.suspects.empty()) return stall;
  const OddRanks odd = odd_ranks(saved);
  // Whoever no longer waits is no part of it.
  const bool waits = !odd.ranks.empty() && std::includes(stall.waiting.begin(), stall.waiting.end(),
                                                         odd.ranks.begin(), odd.ranks.end());
  if (!waits) return stall;
  stall.kind = "rank_missing";
  stall.suspects = odd.ranks;
  std::vector<int> others;
  std::set_difference(stall.waiting.begin(), stall.waiting.end(), odd.ranks.begin(),
                      odd.ranks.end(), std::back_inserter(others));
  stall.waiting = std::move(others);
  stall.text = cut_ranges(rank_ranges(odd.ranks), kMaxRanges) + on_host(attempt, odd.ranks) +
               (odd.ranks.size() == 1 ? " differs: " : " differ: ") + innermost(odd.text) +
               "; no sign of life for " + duration_text(stall.quiet_us);
  return stall;
}

}  // namespace muster
