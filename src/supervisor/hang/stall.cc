// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/stall.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/rank_ranges.h"

namespace muster {

namespace {

using Ranks = std::vector<const RankSigns*>;

constexpr size_t kMaxRanges = 80;
constexpr size_t kMaxWaysTold = 4;  // of waiting

std::vector<int> numbers(const Ranks& ranks) {
  std::vector<int> all;
  all.reserve(ranks.size());
  for (const RankSigns* one : ranks)
    all.push_back(one->rank);
  return all;
}

Ranks those(const Ranks& ranks, const std::function<bool(const RankSigns&)>& wanted) {
  Ranks found;
  for (const RankSigns* one : ranks)
    if (wanted(*one)) found.push_back(one);
  return found;
}

// Of a few ranks the host too, if they have but one.
std::string named(const Ranks& ranks) {
  std::string text = cut_ranges(rank_ranges(numbers(ranks)), kMaxRanges);
  const std::string& host = ranks.front()->host;
  const bool one_host =
      std::all_of(ranks.begin(), ranks.end(), [&](const auto* one) { return one->host == host; });
  if (one_host && !host.empty()) text += " on " + clean_line(host);
  return text;
}

const char* is_or_are(const Ranks& ranks) {
  return ranks.size() == 1 ? " is " : " are ";
}

std::string way_to_wait(const RankSigns& one) {
  if (one.spins) return "using a core";
  if (one.wait_channel.empty()) return one.state == 'R' ? "running" : "waiting";
  return "in " + clean_line(one.wait_channel);
}

// The ranks by how they wait, the most common way first.
std::vector<std::pair<std::string, Ranks>> by_way(const Ranks& ranks) {
  std::map<std::string, Ranks> groups;
  for (const RankSigns* one : ranks)
    groups[way_to_wait(*one)].push_back(one);
  std::vector<std::pair<std::string, Ranks>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return sorted;
}

std::string ways_text(const Ranks& ranks) {
  std::string text;
  size_t told = 0;
  for (const auto& [way, members] : by_way(ranks)) {
    if (told == kMaxWaysTold) return text + ", ...";
    text += (told++ > 0 ? ", " : "") + named(members) + " " + way;
  }
  return text;
}

class Finder {
 public:
  explicit Finder(const StallFacts& facts) : facts_(facts) {
    for (const RankSigns& one : facts.ranks) {
      (one.running ? running_ : ended_).push_back(&one);
    }
  }

  std::optional<Stall> find() {
    if (!all_quiet()) return std::nullopt;
    for (auto way :
         {&Finder::stopped, &Finder::in_kernel, &Finder::after_traceback, &Finder::spinning,
          &Finder::accused, &Finder::in_teardown, &Finder::waits_elsewhere, &Finder::all_idle}) {
      std::optional<Stall> stall = (this->*way)();
      if (!stall) continue;
      if (stall->kind.empty()) return std::nullopt;
      stall->quiet_us = quiet_us_;
      stall->text = cut_line(stall->text + "; no sign of life for " + duration_text(quiet_us_),
                             kMaxStallText);
      return stall;
    }
    return std::nullopt;
  }

 private:
  bool all_quiet() {
    quiet_us_ = std::numeric_limits<int64_t>::max();
    for (const RankSigns* one : running_) {
      if (!one->known) return false;
      quiet_us_ = std::min(quiet_us_, one->quiet_us);
    }
    // Who ends may be the one for whom the others have waited.
    for (const RankSigns* one : ended_)
      quiet_us_ = std::min(quiet_us_, one->quiet_us);
    return !running_.empty() && facts_.threshold_us > 0 && quiet_us_ >= facts_.threshold_us;
  }

  Stall found(std::string kind, const Ranks& suspects, std::string text) const {
    const std::vector<int> named = numbers(suspects);
    std::vector<int> waiting;
    for (const RankSigns* one : running_) {
      if (!std::binary_search(named.begin(), named.end(), one->rank)) waiting.push_back(one->rank);
    }
    return {std::move(kind), named, waiting, 0, std::move(text)};
  }

  // A process that was stopped, or is stuck in the kernel, can do nothing, whatever others do.
  std::optional<Stall> stopped() {
    const Ranks all =
        those(running_, [](const RankSigns& one) { return one.state == 'T' || one.state == 't'; });
    if (all.empty()) return std::nullopt;
    const bool traced = all.front()->state == 't';
    return found("stopped", all,
                 named(all) + is_or_are(all) +
                     (traced ? "stopped by a debugger" : "stopped (SIGSTOP; SIGCONT continues)"));
  }

  std::optional<Stall> in_kernel() {
    const Ranks all = those(running_, [](const RankSigns& one) { return one.state == 'D'; });
    if (all.empty()) return std::nullopt;
    return found("in_kernel", all,
                 named(all) + is_or_are(all) + "stuck in the kernel, " + ways_text(all));
  }

  std::optional<Stall> after_traceback() {
    const Ranks all = those(running_, [](const RankSigns& one) { return !one.traceback.empty(); });
    if (all.empty()) return std::nullopt;
    return found(
        "after_traceback", all,
        named(all) + " printed a traceback and did not end: " + clean_line(all.front()->traceback));
  }

  // An empty kind: there is none to speak of.
  std::optional<Stall> spinning() {
    const Ranks all = those(running_, [](const RankSigns& one) { return one.spins; });
    if (all.empty()) return std::nullopt;
    const Ranks others = those(running_, [](const RankSigns& one) { return !one.spins; });
    if (others.size() < all.size()) return Stall{};
    return found("spinning", all,
                 named(all) + (all.size() == 1 ? " uses a core" : " use a core each") + " and " +
                     (all.size() == 1 ? "does" : "do") + " nothing else, while " +
                     ways_text(others));
  }

  std::optional<Stall> accused() {
    for (const Accusation& one : facts_.accusations) {
      const Ranks suspects = those(running_, [&](const RankSigns& signs) {
        return std::find(one.suspects.begin(), one.suspects.end(), signs.rank) !=
               one.suspects.end();
      });
      // Where most are to blame, nobody in particular is.
      if (suspects.empty() || suspects.size() * 2 > running_.size()) continue;
      return found("rank_missing", suspects, clean_line(one.text) + "; " + ways_text(suspects));
    }
    return std::nullopt;
  }

  std::optional<Stall> in_teardown() {
    if (ended_.empty()) return std::nullopt;
    return found("in_teardown", running_,
                 named(running_) + (running_.size() == 1 ? " does" : " do") + " not end, while " +
                     named(ended_) + " finished: " + ways_text(running_));
  }

  std::optional<Stall> waits_elsewhere() {
    const auto ways = by_way(running_);
    const Ranks& most = ways.front().second;
    if (most.size() * 2 <= running_.size() || most.front()->wait_channel.empty())
      return std::nullopt;
    Ranks differ;
    // Whose place is not known may wait where the others do.
    for (const RankSigns* one : running_) {
      const std::string& channel = one->wait_channel;
      if (!channel.empty() && channel != most.front()->wait_channel) differ.push_back(one);
    }
    if (differ.empty()) return std::nullopt;
    return found("rank_missing", differ,
                 named(differ) + (differ.size() == 1 ? " waits" : " wait") +
                     " elsewhere than the others: " + ways_text(running_));
  }

  std::optional<Stall> all_idle() {
    std::string text = running_.size() == 1 ? "idle: " : "all ranks are idle: ";
    text += ways_text(running_);
    for (const Accusation& one : facts_.accusations)
      text += "; " + clean_line(one.text);
    return found("all_idle", {}, text);
  }

  const StallFacts& facts_;
  Ranks running_;
  Ranks ended_;
  int64_t quiet_us_ = 0;
};

}  // namespace

std::optional<Stall> find_stall(const StallFacts& facts) {
  return Finder(facts).find();
}

}  // namespace muster
