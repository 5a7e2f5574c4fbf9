// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/reported_progress.h"

#include <chrono>
#include <optional>
#include <utility>

namespace muster {

void ReportedProgress::add(int attempt, const StoreServer& store,
                           std::vector<RankSample>& samples) {
  if (attempt != std::exchange(attempt_, attempt)) reports_.clear();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  std::string key;
  for (RankSample& sample : samples) {
    key.assign(kReportKey).append(std::to_string(sample.rank));
    std::optional<std::string> text = store.find(key);
    if (!text) continue;
    Report& report = reports_[sample.rank];
    if (*text != report.text) {
      report.track.note(parse_report(*text), now_us);
      report.text = std::move(*text);
      report.changed_us = now_us;
    }
    if (sample.alive_us > 0 && report.changed_us > sample.alive_us) {
      sample.alive_us = report.changed_us;
      sample.spins = false;
    }
    const Progress& progress = report.track.now();
    if (progress.step >= 0) {
      sample.step = progress.step;
      sample.steps = progress.steps;
      sample.steps_per_s = progress.steps_per_s;
    }
    if (progress.loss) sample.loss = progress.loss;
  }
}

}  // namespace muster
