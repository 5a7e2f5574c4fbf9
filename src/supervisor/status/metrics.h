// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "supervisor/status/status_json.h"

namespace muster {

// GET /metrics in Prometheus' text format. The label `rank` has at most kMaxMetricRanks values and
// no label holds free text, so one job makes a bounded number of series; a larger job has its sums
// and extremes only.
inline constexpr size_t kMaxMetricRanks = 512;
void write_metrics(std::string& to, const StatusFacts& facts);

}  // namespace muster
