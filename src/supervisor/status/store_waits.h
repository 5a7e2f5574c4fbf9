// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/server.h"
#include "supervisor/job/state.h"

namespace muster {

// Who waits in the store for what: the usual picture of a hang is that most ranks wait for keys
// that one rank never sets.

// Connections that wait for the same keys; where there are too many different ones, for keys that
// differ only in their numbers.
struct StoreWaitGroup {
  std::vector<std::string> keys;  // the first of them, kMaxKeysShown at most
  size_t key_count = 0;           // how many different ones
  size_t waiters = 0;
  std::vector<int> ranks;      // theirs, sorted
  std::vector<uint32_t> pids;  // of those whose rank is not known
  int64_t longest_us = 0;
  bool barrier = false;
};

struct StoreWaits {
  std::vector<StoreWaitGroup> groups;  // the longest first, kMaxWaitGroups at most
  size_t more_groups = 0;              // left out
  size_t waiters = 0;
  std::vector<int> ranks;   // that wait, sorted
  std::vector<int> others;  // that run and do not wait, sorted
  int64_t longest_us = 0;
};

inline constexpr size_t kMaxKeysShown = 3;
inline constexpr size_t kMaxWaitGroups = 16;

StoreWaits fold_store_waits(const JobState& state, std::span<const StoreWaiter> waiters,
                            Clock::time_point now);

}  // namespace muster
