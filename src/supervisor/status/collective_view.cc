// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/collective_view.h"

#include <algorithm>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/collective_text.h"
#include "supervisor/status/status_ranks.h"

namespace muster {

namespace {

constexpr size_t kMaxName = 64;

RankEnd end_of(RankShown shown) {
  switch (shown) {
    case RankShown::kExited:
      return RankEnd::kFinished;
    case RankShown::kFailed:
    case RankShown::kSpawnFailed:
    case RankShown::kLost:
      return RankEnd::kDied;
    case RankShown::kStopped:
      return RankEnd::kStopped;
    case RankShown::kPending:
    case RankShown::kRunning:
      break;
  }
  return RankEnd::kRunning;
}

}  // namespace

event::CollectivesFound collectives_now(const StatusFacts& facts) {
  const JobView& view = facts.view;
  const AttemptState* attempt = view.state.current();
  if (attempt == nullptr) return {};
  if (attempt->collectives) return *attempt->collectives;
  const bool runs = view.live && view.state.phase == Phase::kRunning;
  const bool told = std::any_of(facts.samples.begin(), facts.samples.end(),
                                [](const RankSample& sample) { return sample.operations; });
  if (!runs || !told) return {};
  const SamplesByRank samples(*attempt, facts.samples);
  std::vector<KnownRank> known;
  known.reserve(attempt->ranks.size());
  for (const RankState& rank : attempt->ranks) {
    const RankSample* sample = samples.of(rank);
    KnownRank& one = known.emplace_back();
    one.rank = rank.rank;
    one.end = end_of(rank_shown(view, *attempt, rank));
    if (sample == nullptr || one.end != RankEnd::kRunning) continue;
    one.operations = sample->operations;
    one.elapsed_us = std::max<int64_t>(0, view.now_us - sample->time_us);
  }
  event::CollectivesFound found = find_collectives(known, kHangUs);
  found.attempt = attempt->attempt;
  return found;
}

void write_collective(JsonOut& out, const event::CollectiveFinding& finding, size_t text,
                      size_t ranges) {
  out.begin_row();
  out.field("kind", short_text(finding.kind, kMaxName));
  out.field("text", short_text(finding.text, text));
  out.field("suspects", cut_ranges(finding.suspects, ranges));
  out.field("waiting", cut_ranges(finding.waiting, ranges));
  out.field("waited_s", tenths(finding.waited_us));
  out.field("communicator", short_text(finding.communicator, kMaxName));
  out.field("operation", short_text(finding.operation, kMaxName));
  out.field("sequence", finding.sequence);
  out.field("bytes", finding.bytes >= 0 ? std::optional(finding.bytes) : std::nullopt);
  out.key("data_type");
  finding.data_type.empty() ? out.null() : out.value(short_text(finding.data_type, kMaxName));
  out.end_object();
}

void write_operation(JsonOut& out, const RankSample& sample) {
  const LatestCall latest = sample.operations ? latest_call(*sample.operations) : LatestCall{};
  if (latest.call == nullptr) return out.null();
  const RankCall& call = *latest.call;
  const int64_t ago_us = call.took_us < 0 ? call.age_us : call.age_us - call.took_us;
  out.begin_row();
  out.field("call", sized_call_words(call, *latest.communicator));
  out.field("state", call.failed() ? "failed" : call.done() ? "done" : "running");
  out.field("since_us", sample.time_us - ago_us);
  out.end_object();
}

}  // namespace muster
