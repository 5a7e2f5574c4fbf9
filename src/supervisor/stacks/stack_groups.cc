// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/stack_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "supervisor/cli/ranges.h"
#include "supervisor/job/rank_ranges.h"

namespace muster {

namespace {

// Of all nodes together; a line that names more is not from us.
constexpr size_t kMaxMergedRanks = 100'000;
// What stays of a text, however long the list of its ranks: like texts of several nodes are
// compared by what is left of them.
constexpr size_t kMaxText = 320;

// The ranks that a line of group_lines() is about; what is left of it is its text.
std::vector<int> take_ranks(std::string_view& line) {
  for (std::string_view word : {"ranks ", "rank "}) {
    if (!line.starts_with(word)) continue;
    line.remove_prefix(word.size());
    const std::string_view list = line.substr(0, line.find_first_not_of("0123456789-, "));
    line.remove_prefix(list.size());
    for (std::string_view end : {"differs: ", "differ: ", ": "}) {
      if (!line.starts_with(end)) continue;
      line.remove_prefix(end.size());
      const std::string_view written = list.substr(0, list.find_last_not_of(' ') + 1);
      std::vector<int> ranks = parse_ranges(written, kMaxMergedRanks);
      // What can be read of a list that we would have written otherwise is a guess.
      if (ranks.empty() || format_ranges(ranks, ", ") != written) return {};
      return ranks;
    }
  }
  return {};
}

// By what they do. Who is awake for a moment where others sleep does what they do.
std::map<std::string, std::vector<int>> by_activity(const std::vector<RankActivity>& ranks) {
  constexpr std::string_view kAwake = "running: ";
  auto text_of = [](const RankActivity& rank) {
    return std::string_view(rank.text).substr(0, kMaxText);
  };
  std::set<std::string_view> texts;
  for (const RankActivity& rank : ranks)
    texts.insert(text_of(rank));
  std::map<std::string, std::vector<int>> found;
  for (const RankActivity& rank : ranks) {
    std::string_view text = text_of(rank);
    std::string_view calls = rank.text;
    if (calls.starts_with(kAwake)) calls.remove_prefix(kAwake.size());
    calls = calls.substr(0, kMaxText);
    found[std::string(texts.count(calls) != 0 ? calls : text)].push_back(rank.rank);
  }
  return found;
}

}  // namespace

std::vector<std::string> group_lines(const std::vector<RankActivity>& ranks) {
  const std::map<std::string, std::vector<int>> by_text = by_activity(ranks);
  std::vector<std::pair<std::string, std::vector<int>>> groups(by_text.begin(), by_text.end());
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    if (a.second.size() != b.second.size()) return a.second.size() > b.second.size();
    return a.second.front() < b.second.front();
  });
  // Of two equal halves neither is the odd one.
  const bool most = !groups.empty() && groups.front().second.size() * 2 > ranks.size();
  std::vector<std::string> lines;
  for (const auto& [text, members] : groups) {
    if (lines.size() + 1 == kMaxGroups && groups.size() > kMaxGroups) {
      lines.push_back("and " + std::to_string(groups.size() - lines.size()) + " more groups");
      break;
    }
    const bool differs = most && &members != &groups.front().second;
    std::string line = rank_ranges(members) + (differs ? " differs: " : ": ") +
                       (text.empty() ? std::string(kUnseen) : text);
    if (members.size() > 1 && differs) line.replace(line.find(" differs"), 8, " differ");
    if (line.size() > kMaxGroupText) line.resize(kMaxGroupText);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> merged_groups(const std::vector<event::EvidenceSaved>& saved) {
  std::vector<RankActivity> all;
  for (const event::EvidenceSaved& one : saved) {
    for (const std::string& line : one.groups) {
      std::string_view rest = line;
      for (int rank : take_ranks(rest)) {
        if (all.size() >= kMaxMergedRanks) break;
        all.push_back({rank, rest == kUnseen ? "" : std::string(rest)});
      }
    }
  }
  return group_lines(all);
}

OddRanks odd_ranks(const std::vector<event::EvidenceSaved>& saved) {
  OddRanks odd;
  for (const std::string& line : merged_groups(saved)) {
    std::string_view rest = line;
    const std::vector<int> ranks = take_ranks(rest);
    const std::string_view head = std::string_view(line).substr(0, line.size() - rest.size());
    if (rest == kUnseen || head.find(" differ") == std::string_view::npos) continue;
    if (odd.ranks.empty()) odd.text = rest;
    odd.ranks.insert(odd.ranks.end(), ranks.begin(), ranks.end());
  }
  std::sort(odd.ranks.begin(), odd.ranks.end());
  return odd;
}

}  // namespace muster
