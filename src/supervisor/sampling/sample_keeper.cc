// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/sample_keeper.h"

#include <chrono>

#include "supervisor/status/row_states.h"

namespace muster {

namespace {

// A look may come a little before its time.
constexpr int64_t kSlackUs = 1'000'000;

}  // namespace

void SampleKeeper::on_look() {
  const JobState& state = parts_.state();
  const AttemptState* attempt = state.current();
  if (attempt == nullptr) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const int64_t interval = history_interval_us(now_us - unix_us(state, 0), attempt->ranks.size());
  // Each attempt has its first samples.
  if (attempt->attempt == attempt_ && now_us - last_us_ < interval - kSlackUs) return;
  const std::vector<RankSample> samples = parts_.samples();
  if (samples.empty()) return;
  attempt_ = attempt->attempt;
  last_us_ = now_us;
  writer_.append(history_line(attempt->attempt, now_us, samples));
}

}  // namespace muster
