// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/attention.h"

#include <algorithm>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/report.h"
#include "supervisor/status/status_ranks.h"

namespace muster {

namespace {

constexpr int64_t kLongWaitUs = 10'000'000;
// A rank is silent when it has said nothing for this long and another has spoken since then.
constexpr int64_t kSilentUs = 120'000'000;
constexpr size_t kRangesBytes = 100;
constexpr size_t kKeyBytes = 80;
constexpr size_t kTroubles = 2;
constexpr size_t kCollectives = 2;
constexpr size_t kLostNodes = 3;

std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + short_ranges(ranks, kRangesBytes);
}

std::string waits_line(const StoreWaits& waits) {
  const StoreWaitGroup& group = waits.groups.front();
  std::string line =
      waits.ranks.empty() ? std::to_string(waits.waiters) + " processes" : ranks_text(waits.ranks);
  line += waits.waiters == 1 ? " waits" : " wait";
  line += " in the store, for up to " + duration_text(waits.longest_us) + ", for \"" +
          short_text(group.keys.empty() ? "" : group.keys.front(), kKeyBytes) + "\"";
  if (group.key_count > 1 || waits.groups.size() > 1) line += " and others";
  if (!waits.others.empty()) {
    line += "; " + ranks_text(waits.others) +
            (waits.others.size() == 1 ? " does not wait" : " do not wait");
  }
  return line;
}

// Only where some speak: a job that is silent as a whole may be at work.
std::string silence_line(const StatusFacts& facts, const AttemptState& attempt) {
  const SamplesByRank samples(attempt, facts.samples);
  std::vector<int> silent;
  int64_t newest = 0, oldest = 0;
  for (const RankState& rank : attempt.ranks) {
    const RankSample* sample = samples.of(rank);
    if (rank.phase != RankPhase::kRunning || sample == nullptr) continue;
    const int64_t sign =
        std::max(sample->last_output_us, unix_us(facts.view.state, rank.started_us));
    newest = std::max(newest, sign);
    if (facts.view.now_us - sign < kSilentUs) continue;
    oldest = oldest == 0 ? sign : std::min(oldest, sign);
    silent.push_back(rank.rank);
  }
  if (silent.empty() || facts.view.now_us - newest > kSilentUs / 2) return "";
  return ranks_text(silent) + (silent.size() == 1 ? " has" : " have") + " written nothing for " +
         duration_text(facts.view.now_us - oldest) + " while others write";
}

void add_lost_nodes(std::vector<std::string>& lines, const JobState& state,
                    const AttemptState* attempt) {
  size_t told = 0;
  for (const event::NodeSpan& span : attempt ? attempt->nodes : std::vector<event::NodeSpan>()) {
    const auto at = state.node_at.find(span.id);
    if (at == state.node_at.end() || !state.nodes[at->second].lost || told == kLostNodes) continue;
    ++told;
    lines.push_back(state.nodes[at->second].lost->message);
  }
}

}  // namespace

std::vector<std::string> attention_lines(const StatusFacts& facts, const StoreWaits& waits,
                                         const event::CollectivesFound& collectives) {
  const JobState& state = facts.view.state;
  const AttemptState* attempt = state.current();
  std::vector<std::string> lines;
  const bool goes_on = facts.view.live && !state.end;
  if (goes_on && attempt != nullptr) {
    // What comes first explains the rest. Those of an attempt that has ended are history.
    const bool runs = state.phase == Phase::kRunning;
    if (const event::StallFound* stall = stall_now(facts.view))
      lines.push_back(clean_line(stall->text));
    for (size_t i = 0; runs && i < std::min(collectives.found.size(), kCollectives); ++i)
      lines.push_back(collectives.found[i].text);
    if (!waits.groups.empty() && waits.longest_us >= kLongWaitUs)
      lines.push_back(waits_line(waits));
    const int64_t mono_us = facts.view.now_us - unix_us(state, 0);
    if (auto line = uneven_end_line(state, mono_us)) lines.push_back(*line);
    if (std::string line = silence_line(facts, *attempt); !line.empty()) lines.push_back(line);
    add_lost_nodes(lines, state, attempt);
  }
  const size_t count = state.troubles.size();
  for (size_t i = count > kTroubles ? count - kTroubles : 0; i < count; ++i)
    lines.push_back(state.troubles[i].subject + ": " + clean_line(state.troubles[i].message));
  if (std::any_of(state.leftovers.begin(), state.leftovers.end(),
                  [](const event::LeftoverFound& found) { return !found.ended; }))
    lines.push_back(leftovers_line(state));
  if (lines.size() > kMaxAttention) lines.resize(kMaxAttention);
  return lines;
}

}  // namespace muster
