// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/signs_of_life.h"

#include <unistd.h>

#include <algorithm>

namespace muster {

namespace {

// Two threads that poll a hundred times a second each take some 0.5 % of a core.
constexpr double kIdleCores = 0.02;
// Far from that: who hovers around one limit does not pass the other.
constexpr double kBusyCores = 0.1;
// Ticks come whole, whatever fell into them.
constexpr uint64_t kSlackTicks = 3;

// A second. Those of a worker that does nothing else, and of one that is busy with something.
struct Limits {
  double faults;
  double io_bytes;
  double switches;
};
constexpr Limits kOfIdle{100, 4096, 20};
constexpr Limits kOfBusy{10, 1024, 5};

constexpr double kMicro = 1e6;

bool more_than(uint64_t before, uint64_t after, double a_second, int64_t elapsed_us) {
  const auto grown = static_cast<double>(after - before);
  return grown > a_second * static_cast<double>(elapsed_us) / kMicro + a_second;
}

bool ticks_more_than(uint64_t before, uint64_t after, double cores, int64_t elapsed_us) {
  const auto ticks_per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto grown = static_cast<double>(after - before);
  return grown > cores * ticks_per_s * static_cast<double>(elapsed_us) / kMicro + kSlackTicks;
}

}  // namespace

Activity activity_by_use(const ProcUsage& before, const ProcUsage& after, int64_t elapsed_us) {
  // Who comes, goes or has children that come and go does something.
  const bool same = before.found && after.found && before.start_time == after.start_time &&
                    before.members == after.members;
  if (!same || elapsed_us <= 0) return Activity::kAlive;
  const bool falls = after.cpu_ticks < before.cpu_ticks || after.faults < before.faults ||
                     after.system_ticks < before.system_ticks;
  if (falls) return Activity::kAlive;
  const bool busy = ticks_more_than(before.cpu_ticks, after.cpu_ticks, kIdleCores, elapsed_us);
  const bool system =
      ticks_more_than(before.system_ticks, after.system_ticks, kIdleCores, elapsed_us);
  const Limits& limits = busy ? kOfBusy : kOfIdle;
  if (system || more_than(before.faults, after.faults, limits.faults, elapsed_us)) {
    return Activity::kAlive;
  }
  if (!busy) return Activity::kNone;
  const bool much = ticks_more_than(before.cpu_ticks, after.cpu_ticks, kBusyCores, elapsed_us);
  return much ? Activity::kSpins : Activity::kBetween;
}

Activity activity_in_detail(Activity by_use, const std::optional<LifeDetail>& before,
                            const std::optional<LifeDetail>& after, int64_t elapsed_us) {
  // What cannot be read is nothing to raise an alarm about.
  if (by_use == Activity::kAlive || !after) return Activity::kAlive;
  if (!before) return by_use;
  if (after->io_bytes < before->io_bytes || after->switches < before->switches) {
    return Activity::kAlive;
  }
  const Limits& limits = by_use == Activity::kNone ? kOfIdle : kOfBusy;
  const bool more = more_than(before->io_bytes, after->io_bytes, limits.io_bytes, elapsed_us) ||
                    more_than(before->switches, after->switches, limits.switches, elapsed_us);
  return more ? Activity::kAlive : by_use;
}

Activity activity_by_state(Activity in_detail, char state, char state_before) {
  const bool runs = state == 'R';
  if (in_detail == Activity::kAlive) return Activity::kAlive;
  // Whoever looks at its stack holds it for a moment.
  const bool held = state == 't' || state == 'T';
  if (in_detail == Activity::kSpins) {
    return runs ? Activity::kSpins : held ? Activity::kBetween : Activity::kSpinsBeside;
  }
  if (!runs) return in_detail;
  // It waits for nothing but a processor. Once that may be by chance.
  return state_before == 'R' ? Activity::kSpins : Activity::kBetween;
}

void LifeTrack::saw(Activity activity, int64_t elapsed_us, int64_t most_us) {
  const Activity before = last_;
  if (activity != Activity::kBetween) last_ = activity;
  const bool turned = before != Activity::kAlive && before != last_;
  if (activity == Activity::kAlive || turned) {
    quiet_us_ = spun_us_ = 0;
    return;
  }
  const int64_t watched_us = std::clamp<int64_t>(elapsed_us, 0, most_us);
  quiet_us_ += watched_us;
  if (activity != Activity::kNone) spun_us_ += watched_us;
}

}  // namespace muster
