// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "supervisor/job/state.h"

namespace muster {

// Where a worker's log of one stream lies; "" if it has none.
using LogPath = std::function<std::string(int attempt, int local_rank, Stream stream)>;

// The final report on stderr: at most kMaxReportLines lines, without "muster: " prefixes except on
// the first, fit to paste into a bug report.
inline constexpr int kMaxReportLines = 25;
std::vector<std::string> final_report(const JobState& state, const LogPath& log_path);

// summary.json as docs/summary.schema.json describes it.
std::string summary_json(const JobState& state);

}  // namespace muster
