// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/stack_groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "supervisor/job/rank_ranges.h"

namespace muster {

namespace {

// Of all nodes together; a line that names more is not from us.
constexpr int kMaxMergedRanks = 100'000;
constexpr std::string_view kUnseen = "nothing could be seen";

// Whether `text` begins with `word`, which is then taken off.
bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool take_number(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// The ranks that a line of group_lines() is about; what is left of it is its text.
std::vector<int> take_ranks(std::string_view& line) {
  std::vector<int> ranks;
  if (!take(line, "ranks ") && !take(line, "rank ")) return ranks;
  do {
    int first = 0;
    if (!take_number(line, first)) return {};
    int last = first;
    if (take(line, "-") && !take_number(line, last)) return {};
    if (first < 0 || last < first || last - first >= kMaxMergedRanks) return {};
    for (int rank = first; rank <= last; ++rank)
      ranks.push_back(rank);
  } while (take(line, ", "));
  if (!take(line, " differs: ") && !take(line, " differ: ") && !take(line, ": ")) return {};
  return ranks;
}

}  // namespace

std::vector<std::string> group_lines(const std::vector<RankActivity>& ranks) {
  std::map<std::string, std::vector<int>> by_text;
  for (const RankActivity& rank : ranks)
    by_text[rank.text].push_back(rank.rank);
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

}  // namespace muster
