// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/victims.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "supervisor/cli/ranges.h"

namespace muster {

namespace {

// Takes a number off the front of the text.
bool take_number(std::string_view& text, int64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

void VictimFold::add(const std::string& reason, std::string_view ranks, int first, int count) {
  auto [it, is_new] = index_.emplace(reason, by_reason_.size());
  if (is_new) by_reason_.push_back({reason, {}});
  std::vector<int>& all = by_reason_[it->second].second;
  const size_t most = all.size() + static_cast<size_t>(count);
  int64_t from = 0;
  while (take_number(ranks, from)) {
    int64_t to = from;
    if (ranks.starts_with("-")) {
      ranks.remove_prefix(1);
      if (!take_number(ranks, to)) return;
    }
    const int64_t end = std::min<int64_t>(to, int64_t{first} + count - 1);
    for (int64_t rank = std::max<int64_t>(from, first); rank <= end && all.size() < most; ++rank) {
      if (!guilty_.contains(static_cast<int>(rank))) all.push_back(static_cast<int>(rank));
    }
    if (!ranks.starts_with(",")) return;
    ranks.remove_prefix(1);
  }
}

std::vector<event::VictimGroup> VictimFold::groups() const {
  std::vector<std::pair<std::string, std::vector<int>>> filled;
  for (const auto& group : by_reason_) {
    if (group.second.empty()) continue;
    if (filled.size() < kMaxVictimGroups) {
      filled.push_back(group);
      continue;
    }
    auto& [reason, ranks] = filled.back();
    reason = "and other reasons";
    ranks.insert(ranks.end(), group.second.begin(), group.second.end());
  }
  std::vector<event::VictimGroup> groups;
  groups.reserve(filled.size());
  for (auto& [reason, ranks] : filled)
    groups.push_back({format_ranges(std::move(ranks)), reason});
  return groups;
}

}  // namespace muster
