// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "supervisor/job/state.h"
#include "supervisor/status/rank_sample.h"
#include "supervisor/status/sample_history.h"

namespace muster {

// Keeps the history of what is measured in the run's folder. Owned by the supervisor's main, which
// tells it of each look of the sampler.
class SampleKeeper {
 public:
  struct Parts {
    std::function<const JobState&()> state;
    std::function<std::vector<RankSample>()> samples;  // of all ranks that are known here
    std::function<void(const std::string&)> on_trouble;
  };
  SampleKeeper(Loop& loop, const std::string& run_dir, Parts parts)
      : parts_(std::move(parts)), writer_(loop, run_dir + "/samples.jsonl", parts_.on_trouble) {}

  // There are new samples; they are kept if the last ones are old enough.
  void on_look();

 private:
  Parts parts_;
  HistoryWriter writer_;
  int attempt_ = -1;
  int64_t last_us_ = 0;
};

}  // namespace muster
