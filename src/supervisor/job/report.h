// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/job/state.h"

namespace muster {

// Where a worker's log of one stream lies; "" if it has none.
using LogPath = std::function<std::string(int attempt, int local_rank, Stream stream)>;

// The final report on stderr: at most kMaxReportLines lines, with "muster: " on the first only, fit
// to paste into a bug report. One line for a job that succeeded and left nothing.
inline constexpr int kMaxReportLines = 25;
std::vector<std::string> final_report(const JobState& state, const LogPath& log_path);

// How it ended, in one line: the report's first, without "muster: " and the logs.
std::string end_line(const JobState& state);

// summary.json as docs/summary.schema.json describes it, with a newline at its end.
std::string summary_json(const JobState& state);

// What the console says, without "muster: ", when `event` happens; `after` is the state with the
// event applied. Most events are silent.
std::optional<std::string> live_line(const JobState& after, const Event& event);

// "ranks 0-2 finished, rank 3 still running for 12 s": for a job of which a part ended with 0 while
// the rest runs on. To be asked some time after an exit with 0 that left others running, once for
// each such exit that was the latest. nullopt while it does not apply.
inline constexpr int64_t kUnevenEndUs = 5'000'000;
std::optional<std::string> uneven_end_line(const JobState& state, int64_t now_us);

// "nothing left running", or what is and why: the last line of every job that had something left.
std::string leftovers_line(const JobState& state);

// Why a victim ended: "stopped by muster", and how if not by the signal it was sent.
std::string victim_reason(const RankState& victim);

// "SIGTERM from pid 123 (alice, scancel)".
std::string describe_signal(const event::SignalReceived& received);

}  // namespace muster
