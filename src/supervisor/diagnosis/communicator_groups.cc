// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/communicator_groups.h"

#include <utility>

namespace muster {

const RankCall* collective_at(const RankCommunicator& communicator, uint64_t sequence) {
  for (const RankCall& call : communicator.calls) {
    if (!call.message() && call.sequence == sequence) return &call;
  }
  return nullptr;
}

KnownWorld::KnownWorld(std::span<const KnownRank> ranks) {
  for (const KnownRank& known : ranks) {
    by_rank.emplace(known.rank, &known);
    if (!known.operations) continue;
    for (const RankCommunicator& communicator : known.operations->communicators) {
      const auto [found, fresh] =
          group_at.emplace(std::pair(communicator.id, communicator.size), 0);
      if (fresh) {
        found->second = groups.size();
        groups.push_back({&communicator, {}});
      }
      Group& group = groups[found->second];
      if (group.any->members.empty()) group.any = &communicator;
      group.seats.emplace(communicator.rank, Seat{&known, &communicator});
    }
  }
}

}  // namespace muster
