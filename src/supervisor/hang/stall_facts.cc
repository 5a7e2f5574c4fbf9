// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/stall_facts.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/collectives.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/rank_ranges.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/row_states.h"
#include "supervisor/status/store_waits.h"

namespace muster {

namespace {

using SampleOf = std::unordered_map<int, const RankSample*>;

constexpr size_t kMaxKey = 100;
constexpr size_t kMaxRanges = 80;

bool runs(const RankState& rank) {
  return rank.phase == RankPhase::kRunning || rank.phase == RankPhase::kPending;
}

RankSigns signs_of(const StallSources& sources, const AttemptState& attempt, const RankState& rank,
                   const RankSample* sample) {
  RankSigns signs;
  signs.rank = rank.rank;
  if (attempt.node_count > 1) signs.host = attempt.host_of(rank.rank);
  signs.running = runs(rank);
  if (!signs.running) {
    signs.quiet_us = std::max<int64_t>(0, sources.now_us - unix_us(sources.state, rank.ended_us));
  }
  if (sample == nullptr || sample->alive_us <= 0 || !signs.running) return signs;
  signs.known = sources.now_us - sample->time_us <= sources.fresh_us;
  signs.quiet_us = std::max<int64_t>(0, sample->time_us - sample->alive_us);
  signs.spins = sample->spins;
  signs.state = sample->state;
  signs.wait_channel = sample->wait_channel;
  signs.traceback = sample->traceback;
  return signs;
}

std::vector<int> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  const std::optional<RankList> list = parse_rank_list(text);
  if (!list) return ranks;
  for (const auto& [first, last] : *list)
    for (int rank = first; rank <= last; ++rank)
      ranks.push_back(rank);
  return ranks;
}

void accuse_by_collectives(const StallSources& sources, const AttemptState& attempt,
                           const SampleOf& samples, StallFacts& facts) {
  std::vector<KnownRank> known;
  bool told = false;
  for (const RankState& rank : attempt.ranks) {
    KnownRank& one = known.emplace_back();
    one.rank = rank.rank;
    one.end = runs(rank) ? RankEnd::kRunning : RankEnd::kFinished;
    const auto sample = samples.find(rank.rank);
    if (sample == samples.end() || !runs(rank)) continue;
    one.operations = sample->second->operations;
    one.elapsed_us = std::max<int64_t>(0, sources.now_us - sample->second->time_us);
    told = told || one.operations;
  }
  if (!told) return;
  const int64_t least_us = std::min(kHangUs, sources.threshold_us);
  for (const event::CollectiveFinding& finding : find_collectives(known, least_us).found) {
    facts.accusations.push_back(
        {ranks_in(finding.suspects), ranks_in(finding.waiting), finding.text});
  }
}

void accuse_by_store(const StallSources& sources, StallFacts& facts) {
  const StoreWaits waits = fold_store_waits(sources.state, sources.store_waiters, sources.now);
  if (waits.groups.empty() || waits.longest_us < sources.threshold_us / 2) return;
  const StoreWaitGroup& group = waits.groups.front();
  Accusation accusation;
  accusation.waiting = waits.ranks;
  // Who does not say who it is may be any of those that seem not to wait.
  const bool all_known = std::all_of(sources.store_waiters.begin(), sources.store_waiters.end(),
                                     [](const StoreWaiter& waiter) { return waiter.pid != 0; });
  if (all_known && waits.more_groups == 0) accusation.suspects = waits.others;
  accusation.text = group.ranks.empty() ? std::to_string(group.waiters) + " clients wait"
                                        : cut_ranges(rank_ranges(group.ranks), kMaxRanges) +
                                              (group.ranks.size() == 1 ? " waits" : " wait");
  accusation.text += " in the store";
  if (!group.keys.empty()) {
    accusation.text += " for key '" + cut_line(clean_line(group.keys.front()), kMaxKey) + "'";
    if (group.key_count > 1) accusation.text += " and others";
  }
  facts.accusations.push_back(std::move(accusation));
}

}  // namespace

StallFacts stall_facts(const StallSources& sources, std::vector<RankSigns>& signs) {
  StallFacts facts;
  signs.clear();
  const AttemptState* attempt = sources.state.current();
  if (attempt == nullptr) return facts;
  SampleOf samples;
  for (const RankSample& sample : sources.samples)
    samples.emplace(sample.rank, &sample);
  int64_t quiet_us = sources.threshold_us;
  for (const RankState& rank : attempt->ranks) {
    const auto sample = samples.find(rank.rank);
    signs.push_back(
        signs_of(sources, *attempt, rank, sample == samples.end() ? nullptr : sample->second));
    const RankSigns& one = signs.back();
    quiet_us = std::min(quiet_us, one.known || !one.running ? one.quiet_us : 0);
  }
  facts.threshold_us = sources.threshold_us;
  facts.ranks = signs;
  // While the job goes on nobody is to blame, and nobody needs to look for him.
  if (quiet_us < sources.threshold_us) return facts;
  accuse_by_collectives(sources, *attempt, samples, facts);
  accuse_by_store(sources, facts);
  return facts;
}

}  // namespace muster
