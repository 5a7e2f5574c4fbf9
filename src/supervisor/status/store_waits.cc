// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/store_waits.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

namespace muster {

namespace {

constexpr size_t kMaxPidsShown = 16;

// "10.0.0.2:41234" -> "10.0.0.2", "[::1]:5" -> "::1"
std::string_view host_part(std::string_view peer) {
  peer = peer.substr(0, peer.rfind(':'));
  if (peer.starts_with('[') && peer.ends_with(']')) peer = peer.substr(1, peer.size() - 2);
  return peer;
}

// Finds the rank of a client by the process id that it gave and where it comes from. Several nodes
// may have the same process ids.
class RankFinder {
 public:
  explicit RankFinder(const JobState& state) : attempt_(state.current()) {
    if (attempt_ == nullptr) return;
    for (const RankState& rank : attempt_->ranks) {
      if (rank.pid > 0) by_pid_.emplace(rank.pid, &rank);
    }
    for (const event::NodeSpan& span : attempt_->nodes) {
      const auto at = state.node_at.find(span.id);
      if (at == state.node_at.end()) continue;
      addresses_.emplace(span.node, state.nodes[at->second].joined.address);
    }
  }

  std::optional<int> find(const StoreWaiter& waiter) const {
    const auto [begin, end] = by_pid_.equal_range(static_cast<int>(waiter.pid));
    if (waiter.pid == 0 || begin == end) return std::nullopt;
    if (std::next(begin) == end) return begin->second->rank;
    for (auto found = begin; found != end; ++found) {
      if (comes_from(waiter, found->second->node)) return found->second->rank;
    }
    return std::nullopt;
  }

 private:
  bool comes_from(const StoreWaiter& waiter, int node) const {
    const std::string_view host = host_part(waiter.peer);
    const auto address = addresses_.find(node);
    if (address != addresses_.end() && address->second == host) return true;
    return node == attempt_->node && (host.starts_with("127.") || host == "::1");
  }

  const AttemptState* attempt_;
  std::unordered_multimap<int, const RankState*> by_pid_;
  std::unordered_map<int, std::string> addresses_;
};

// "/default_pg/0//cpu//0/12" -> "/default_pg/*//cpu//*/*"
std::string without_numbers(std::string_view key) {
  std::string pattern;
  for (char c : key) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) {
      pattern += c;
    } else if (!pattern.ends_with('*')) {
      pattern += '*';
    }
  }
  return pattern;
}

// What makes two waiters alike.
std::string likeness(const StoreWaiter& waiter, bool exact) {
  std::string text = waiter.barrier ? "b" : "";
  std::set<std::string> seen;
  for (const std::string& key : waiter.keys) {
    const std::string part = exact ? key : without_numbers(key);
    if (!seen.insert(part).second) continue;
    text += '\0';
    text += part;
  }
  return text;
}

using Groups = std::map<std::string, std::vector<const StoreWaiter*>>;

Groups group_by(std::span<const StoreWaiter> waiters, bool exact) {
  Groups groups;
  for (const StoreWaiter& waiter : waiters)
    groups[likeness(waiter, exact)].push_back(&waiter);
  return groups;
}

StoreWaitGroup fold(const std::vector<const StoreWaiter*>& members, const RankFinder& finder,
                    Clock::time_point now) {
  StoreWaitGroup group;
  std::set<std::string_view> keys;
  group.barrier = members.front()->barrier;
  group.waiters = members.size();
  for (const StoreWaiter* waiter : members) {
    keys.insert(waiter->keys.begin(), waiter->keys.end());
    if (const std::optional<int> rank = finder.find(*waiter)) {
      group.ranks.push_back(*rank);
    } else if (group.pids.size() < kMaxPidsShown && waiter->pid != 0) {
      group.pids.push_back(waiter->pid);
    }
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - waiter->since);
    group.longest_us = std::max<int64_t>(group.longest_us, waited.count());
  }
  group.key_count = keys.size();
  for (std::string_view key : keys) {
    if (group.keys.size() == kMaxKeysShown) break;
    group.keys.emplace_back(key);
  }
  std::sort(group.ranks.begin(), group.ranks.end());
  group.ranks.erase(std::unique(group.ranks.begin(), group.ranks.end()), group.ranks.end());
  return group;
}

std::vector<int> running_but(const JobState& state, const std::vector<int>& waiting) {
  std::vector<int> others;
  const AttemptState* attempt = state.current();
  if (attempt == nullptr || waiting.empty()) return others;
  for (const RankState& rank : attempt->ranks) {
    if (rank.phase != RankPhase::kRunning) continue;
    if (!std::binary_search(waiting.begin(), waiting.end(), rank.rank)) others.push_back(rank.rank);
  }
  return others;
}

}  // namespace

StoreWaits fold_store_waits(const JobState& state, std::span<const StoreWaiter> waiters,
                            Clock::time_point now) {
  StoreWaits waits;
  if (waiters.empty()) return waits;
  waits.waiters = waiters.size();
  const RankFinder finder(state);
  Groups groups = group_by(waiters, true);
  if (groups.size() > kMaxWaitGroups) groups = group_by(waiters, false);
  for (const auto& [likeness, members] : groups) {
    StoreWaitGroup group = fold(members, finder, now);
    waits.ranks.insert(waits.ranks.end(), group.ranks.begin(), group.ranks.end());
    waits.longest_us = std::max(waits.longest_us, group.longest_us);
    waits.groups.push_back(std::move(group));
  }
  std::sort(waits.ranks.begin(), waits.ranks.end());
  waits.ranks.erase(std::unique(waits.ranks.begin(), waits.ranks.end()), waits.ranks.end());
  waits.others = running_but(state, waits.ranks);
  std::stable_sort(waits.groups.begin(), waits.groups.end(),
                   [](const auto& a, const auto& b) { return a.longest_us > b.longest_us; });
  if (waits.groups.size() > kMaxWaitGroups) {
    waits.more_groups = waits.groups.size() - kMaxWaitGroups;
    waits.groups.resize(kMaxWaitGroups);
  }
  return waits;
}

}  // namespace muster
