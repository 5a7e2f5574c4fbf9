// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/hang/stall.h"

namespace muster {

// Ranks that have been looked at, for find_stall().
struct Signs {
  static constexpr int64_t kSecond = 1'000'000;
  static constexpr int64_t kThreshold = 300 * kSecond;
  std::vector<RankSigns> ranks;
  std::vector<Accusation> accusations;

  // So many that wait in the same place.
  explicit Signs(int count, std::string channel = "futex_wait_queue") {
    for (int rank = 0; rank < count; ++rank) {
      RankSigns& one = ranks.emplace_back();
      one.rank = rank;
      one.known = true;
      one.quiet_us = kThreshold + 7 * kSecond;
      one.state = 'S';
      one.wait_channel = channel;
    }
  }
  RankSigns& at(int rank) { return ranks.at(static_cast<size_t>(rank)); }
  Signs& spins(int rank) {
    at(rank).spins = true;
    at(rank).state = 'R';
    at(rank).wait_channel.clear();
    return *this;
  }
  std::optional<Stall> find() const { return find_stall({kThreshold, ranks, accusations}); }
};

}  // namespace muster
