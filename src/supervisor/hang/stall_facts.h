// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "store/server.h"
#include "supervisor/hang/stall.h"
#include "supervisor/job/state.h"
#include "supervisor/status/rank_sample.h"

namespace muster {

// What is known here of the current attempt, made into what find_stall() asks. Pure.
struct StallSources {
  const JobState& state;
  std::span<const RankSample> samples;  // of all ranks
  std::span<const StoreWaiter> store_waiters;
  int64_t now_us = 0;  // unix
  Clock::time_point now{};
  int64_t threshold_us = 0;
  int64_t fresh_us = 0;  // a sample that is older says nothing of now
};

StallFacts stall_facts(const StallSources& sources, std::vector<RankSigns>& signs);

}  // namespace muster
