// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/collective_text.h"
#include "supervisor/diagnosis/communicator_groups.h"

namespace muster {

namespace {

struct LastCall {
  const Seat* seat = nullptr;
  const RankCall* call = nullptr;
  const Group* group = nullptr;

  bool open() const { return call->took_us < 0; }
};

std::optional<LastCall> last_call(const KnownWorld& world, const KnownRank& dead) {
  LastCall last;
  auto newer = [&](const RankCall& call) {
    return last.call == nullptr || call.done() < last.call->done() ||
           (call.done() == last.call->done() && call.age_us < last.call->age_us);
  };
  for (const RankCommunicator& communicator : dead.operations->communicators) {
    const Group& group = world.group_of(communicator);
    const Seat* own = group.seat(communicator.rank);
    if (own->communicator != &communicator) continue;  // another has told that it is that rank
    for (const RankCall& call : communicator.calls) {
      if (newer(call)) last = {own, &call, &group};
    }
  }
  if (last.call == nullptr) return std::nullopt;
  return last;
}

// Where a rank was when it died.
Ranked death_finding(const KnownRank& dead, const LastCall& last) {
  const RankCall& call = *last.call;
  Ranked ranked{Ranked::kDied, {}};
  event::CollectiveFinding& finding = ranked.finding;
  finding.kind = "died";
  finding.suspects = std::to_string(dead.rank);
  fill_operation(finding, call, *last.seat->communicator);
  const std::string operation = sized_call_words(call, *last.seat->communicator);
  finding.text = "rank " + std::to_string(dead.rank) + " died ";
  if (last.open()) {
    finding.text += "in " + operation + ", " + wait_words(call.age_us) + " after it entered it";
    return ranked;
  }
  // It failed, and so it died: what explains that is told elsewhere.
  if (call.failed()) ranked.weight = Ranked::kStuck;
  finding.text += "outside of any operation; its last, " + operation + "," +
                  (call.failed() ? " had failed " : " had ended ") +
                  wait_words(call.age_us - call.took_us) + " before";
  return ranked;
}

// And who was in the same operation.
void add_others(const KnownRank& dead, const LastCall& last, event::CollectiveFinding& finding) {
  if (last.call->message()) return;
  std::vector<int> others;
  for (const auto& [rank, one] : last.group->seats) {
    const RankCall* call = collective_at(*one.communicator, last.call->sequence);
    if (one.known == &dead || call == nullptr || call->done()) continue;
    others.push_back(one.world());
    finding.waited_us = std::max(finding.waited_us, one.waited_us(*call));
  }
  finding.waiting = format_ranges(others, ",");
  if (others.empty()) return;
  finding.text +=
      "; " + ranks_words(others) + (others.size() == 1 ? " was" : " were") + " in it too";
}

}  // namespace

void find_deaths(const KnownWorld& world, std::span<const KnownRank> ranks,
                 std::vector<Ranked>& found) {
  size_t told = 0;  // with the others: each costs a look at all ranks, and no more are shown
  for (const KnownRank& known : ranks) {
    if (known.end != RankEnd::kDied || !known.operations) continue;
    const std::optional<LastCall> last = last_call(world, known);
    if (!last) continue;
    Ranked ranked = death_finding(known, *last);
    if (last->open() && told++ < kMaxCollectiveFindings) add_others(known, *last, ranked.finding);
    found.push_back(std::move(ranked));
  }
}

}  // namespace muster
