// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "supervisor/job/state.h"

namespace muster {

class JobSource;

// What rows say about states, derived from the JobState. Pure.

// A job at one moment. Refers to its state.
struct JobView {
  const JobState& state;
  bool live = true;     // false: shown from its files
  bool hosting = true;  // the coordinator is here
  int64_t now_us = 0;   // unix
};
JobView view_of(const JobSource& source);

// "starting", "waiting", ...; a run that is shown from its files has ended.
std::string_view phase_name(const JobView& view);

// That the job makes no progress now, null if it does or nobody can say: then its phase is
// "stalled" instead of "running".
const event::StallFound* stall_now(const JobView& view);

// Unix time at which the next attempt begins, while a restart is put off.
std::optional<int64_t> restart_due_us(const JobView& view);

enum class RankShown {
  kPending,
  kRunning,
  kExited,  // with 0
  kFailed,
  kStopped,      // by muster, before it ended by itself
  kSpawnFailed,  // could not be started
  kLost,         // it ran, and nobody saw its end: its node was lost, or muster was killed
};
inline constexpr size_t kRankShownCount = 7;
RankShown rank_shown(const JobView& view, const AttemptState& attempt, const RankState& rank);
std::string_view name_of(RankShown shown);

// How many ranks of an attempt are in each state.
struct RankCounts {
  std::array<int, kRankShownCount> of{};
  int operator[](RankShown shown) const { return of[static_cast<size_t>(shown)]; }
};
RankCounts count_ranks(const JobView& view, const AttemptState& attempt);

// "running", "succeeded", "failed", "stopped" or "lost".
std::string_view attempt_state_name(const JobView& view, const AttemptState& attempt);
std::optional<int64_t> attempt_end_us(const JobView& view, const AttemptState& attempt);  // unix

std::string_view host_of(const AttemptState& attempt, const RankState& rank);

// Of an event's time in the job, in unix microseconds.
int64_t unix_us(const JobState& state, int64_t mono_us);

}  // namespace muster
