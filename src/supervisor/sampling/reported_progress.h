// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "store/server.h"
#include "supervisor/sampling/progress_track.h"
#include "supervisor/status/rank_sample.h"

namespace muster {

// What workers report of themselves in the store, under "muster/progress/<rank>". It wins over what
// their lines seem to say. Owned by whoever has the samples of all ranks, beside the store.
class ReportedProgress {
 public:
  // Adds to the samples of `attempt` what the store holds now.
  void add(int attempt, const StoreServer& store, std::vector<RankSample>& samples);

 private:
  struct Report {
    std::string text;
    ProgressTrack track;
    int64_t changed_us = 0;  // unix
  };
  int attempt_ = -1;
  std::unordered_map<int, Report> reports_;  // by rank
};

}  // namespace muster
