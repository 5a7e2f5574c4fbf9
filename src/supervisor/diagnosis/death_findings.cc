// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <tuple>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/collective_text.h"
#include "supervisor/diagnosis/communicator_groups.h"

namespace muster {

namespace {

// Where a rank was when it died, and who was in the same operation.
std::optional<Ranked> death_finding(const KnownWorld& world, const KnownRank& dead) {
  const Seat* seat = nullptr;
  const RankCall* last = nullptr;
  const Group* of = nullptr;
  auto newer = [&](const RankCall& call) {
    return last == nullptr || call.done() < last->done() ||
           (call.done() == last->done() && call.age_us < last->age_us);
  };
  for (const RankCommunicator& communicator : dead.operations->communicators) {
    const Group& group = world.group_of(communicator);
    const Seat* own = group.seat(communicator.rank);
    if (own->communicator != &communicator) continue;  // another has told that it is that rank
    for (const RankCall& call : communicator.calls) {
      if (newer(call)) std::tie(seat, last, of) = std::tuple(own, &call, &group);
    }
  }
  if (last == nullptr) return std::nullopt;
  Ranked ranked{Ranked::kDied, {}};
  event::CollectiveFinding& finding = ranked.finding;
  finding.kind = "died";
  finding.suspects = std::to_string(dead.rank);
  fill_operation(finding, *last, *seat->communicator);
  const std::string operation = sized_call_words(*last, *seat->communicator);
  finding.text = "rank " + std::to_string(dead.rank) + " died ";
  if (last->took_us >= 0) {
    // It failed, and so it died: what explains that is told elsewhere.
    if (last->failed()) ranked.weight = Ranked::kStuck;
    finding.text += "outside of any operation; its last, " + operation + "," +
                    (last->failed() ? " had failed " : " had ended ") +
                    wait_words(last->age_us - last->took_us) + " before";
    return ranked;
  }
  finding.text += "in " + operation + ", " + wait_words(last->age_us) + " after it entered it";
  std::vector<int> others;
  for (const auto& [rank, one] : of->seats) {
    const RankCall* call =
        last->message() ? nullptr : collective_at(*one.communicator, last->sequence);
    if (one.known == &dead || call == nullptr || call->done()) continue;
    others.push_back(one.world());
    finding.waited_us = std::max(finding.waited_us, one.waited_us(*call));
  }
  finding.waiting = format_ranges(others, ",");
  if (others.empty()) return ranked;
  finding.text +=
      "; " + ranks_words(others) + (others.size() == 1 ? " was" : " were") + " in it too";
  return ranked;
}

}  // namespace

void find_deaths(const KnownWorld& world, std::span<const KnownRank> ranks,
                 std::vector<Ranked>& found) {
  for (const KnownRank& known : ranks) {
    if (known.end != RankEnd::kDied || !known.operations) continue;
    if (auto ranked = death_finding(world, known)) found.push_back(std::move(*ranked));
  }
}

}  // namespace muster
