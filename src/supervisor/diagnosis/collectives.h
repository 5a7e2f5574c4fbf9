// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "supervisor/diagnosis/rank_operations.h"
#include "supervisor/job/event.h"

namespace muster {

// Who keeps whom waiting, from what the workers of all nodes have told of their communicators.
// Pure.

// An operation that runs is worth telling from this time on: while the job runs, and when it is
// being ended.
inline constexpr int64_t kHangUs = 10'000'000;
inline constexpr int64_t kHangAtEndUs = 3'000'000;
// One that was given up, by a deadline or since a connection broke.
inline constexpr int64_t kFailedWaitUs = 1'000'000;

inline constexpr size_t kMaxCollectiveFindings = 16;

struct KnownRank {
  int rank = 0;
  RankEnd end = RankEnd::kRunning;
  int64_t elapsed_us = 0;                            // since its page was read
  std::shared_ptr<const RankOperations> operations;  // null: it has told nothing
};

// Findings that explain others come first: who died, who called something else, who never came.
// `least_us`: kHangUs or kHangAtEndUs; a death is told at once. Their attempt is left to the
// caller.
event::CollectivesFound find_collectives(std::span<const KnownRank> ranks, int64_t least_us);

}  // namespace muster
