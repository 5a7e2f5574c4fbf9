// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/server.h"
#include "supervisor/status/job_source.h"
#include "supervisor/status/row_states.h"

namespace muster {

// GET /status: what is wrong with my job, in one answer that fits on a screen or two and, whatever
// the job, into kMaxStatusBytes. Ranks are written one by one up to kMaxFullRanks; of a larger job
// those that look like each other are folded and the notable ones listed.
inline constexpr size_t kMaxStatusBytes = size_t{64} << 10;
inline constexpr size_t kMaxFullRanks = 64;
inline constexpr size_t kMaxAskedRanks = 1'024;  // of ?ranks=

struct StatusFacts {
  JobView view;
  std::vector<RankSample> samples;  // of the current attempt, by rank
  std::vector<StoreWaiter> waiters;
  std::optional<StoreCounters> store;
  Clock::time_point now{};  // of the waiters' clock
};

// `asked`: inclusive ranges of ranks to be told one by one (then the limit of bytes does not hold).
using RankList = std::vector<std::pair<int, int>>;
void write_status(std::string& to, const StatusFacts& facts, const std::optional<RankList>& asked);

// Why ranks cannot be shown, for the client; "" if they can.
std::string check_asked_ranks(const JobState& state, const RankList& asked);

}  // namespace muster
