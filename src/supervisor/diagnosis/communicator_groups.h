// SPDX-License-Identifier: Apache-2.0
// Only for the sources of collectives.h.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "supervisor/diagnosis/collectives.h"

namespace muster {

// A member of a communicator that has told of it.
struct Seat {
  const KnownRank* known = nullptr;
  const RankCommunicator* communicator = nullptr;

  int world() const { return known->rank; }
  bool gone() const { return known->end == RankEnd::kDied || known->end == RankEnd::kFinished; }
  // It is in the call, or gave it up. Of a communicator that it has closed since, only for a while:
  // a program may go on with another one.
  bool waits_in(const RankCall& call) const {
    constexpr int64_t kRecentUs = 10'000'000;
    if (call.done() || !communicator->closed) return !call.done();
    return call.failed() && call.age_us - call.took_us + known->elapsed_us <= kRecentUs;
  }
  // How long it has been in the call, or was when it ended.
  int64_t waited_us(const RankCall& call) const {
    return call.took_us >= 0 ? call.took_us : call.age_us + known->elapsed_us;
  }
};

// All that is known of one communicator.
struct Group {
  const RankCommunicator* any = nullptr;  // one that lists the members, if there is one
  std::map<int, Seat> seats;              // by rank in the communicator

  const Seat* seat(int rank) const {
    const auto at = seats.find(rank);
    return at == seats.end() ? nullptr : &at->second;
  }
  // -1: not known.
  int world_rank(int rank) const {
    const Seat* known = seat(rank);
    return known ? known->world() : member_at(*any, rank);
  }
  bool listed() const { return !any->members.empty(); }
};

struct KnownWorld {
  explicit KnownWorld(std::span<const KnownRank> ranks);
  std::unordered_map<int, const KnownRank*> by_rank;
  std::vector<Group> groups;
  std::map<std::pair<uint64_t, int>, size_t> group_at;  // by id and size

  const KnownRank* find(int rank) const {
    const auto at = by_rank.find(rank);
    return at == by_rank.end() ? nullptr : at->second;
  }
  // Of a communicator that one of the ranks has told of.
  const Group& group_of(const RankCommunicator& communicator) const {
    return groups[group_at.at({communicator.id, communicator.size})];
  }
};

// A finding and its place among the others.
struct Ranked {
  enum Weight { kDied, kMismatch, kIdle, kCircle, kBusy, kStuck };
  Weight weight = kStuck;
  event::CollectiveFinding finding;
};

struct Thresholds {
  int64_t running_us = kHangUs;
  int64_t failed_us = kFailedWaitUs;
  bool passed(const RankCall& call, int64_t waited_us) const {
    return waited_us >= (call.failed() ? failed_us : running_us);
  }
};

// The collective with that number, if the page still had it.
const RankCall* collective_at(const RankCommunicator& communicator, uint64_t sequence);

// Where each rank was when it died.
void find_deaths(const KnownWorld& world, std::span<const KnownRank> ranks,
                 std::vector<Ranked>& found);

// Messages that do not come, and that nobody takes.
void find_message_waits(const KnownWorld& world, const Thresholds& thresholds,
                        std::vector<Ranked>& found);

}  // namespace muster
