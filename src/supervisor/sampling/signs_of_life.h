// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "supervisor/sampling/proc_usage.h"

namespace muster {

// Whether a worker does anything, from the kernel's counters at two looks. Pure.
//
// What hangs is never quite still: threads that poll ten or a hundred times a second wait with it,
// monitors look at /proc, a watchdog wakes. So little of anything is no sign of life. On the other
// hand a worker that lives shows far more than these limits in one look of many, and one is enough.
//
// A worker may also use a core and do nothing else whatever: it asks the kernel for no page and no
// byte, and its main thread never waits, or for ever. That is how a lock that spins and an endless
// loop look, and now and then arithmetic; so it is told apart, and others decide. It may be the
// main thread that runs, or another one while that waits. kBetween is such a use that is too small
// to be sure of: threads that poll, or a loop that gets little of a busy processor.
enum class Activity { kNone, kBetween, kSpins, kSpinsBeside, kAlive };

// The counters that cost another look, at each process of a worker.
struct LifeDetail {
  uint64_t io_bytes = 0;  // read and written, by any call that is no socket's own
  uint64_t switches = 0;  // how often the main threads gave up the processor to wait
};

// By what was looked at anyway; unless that is a sign of life, the details decide.
Activity activity_by_use(const ProcUsage& before, const ProcUsage& after, int64_t elapsed_us);

// `by_use` as above. Details that are not known before are not known to have changed; those that
// cannot be had now may have.
Activity activity_in_detail(Activity by_use, const std::optional<LifeDetail>& before,
                            const std::optional<LifeDetail>& after, int64_t elapsed_us);

// That by the state of its main thread, now and at the look before.
Activity activity_by_state(Activity in_detail, char state, char state_before);

// How long one worker has shown no life. Time in which nobody looked does not count: the machine
// was suspended, or muster and its workers were frozen together.
//
// Who computes after it has waited, or waits after it has computed, does something: a loop never
// ends, and what waits for ever never computes. What lies between ends neither.
class LifeTrack {
 public:
  void saw(Activity activity, int64_t elapsed_us, int64_t most_us);
  int64_t quiet_us() const { return quiet_us_; }
  // Most of that time it used a core.
  bool spins() const { return spun_us_ > 0 && spun_us_ * 2 > quiet_us_; }

 private:
  int64_t quiet_us_ = 0;
  int64_t spun_us_ = 0;
  Activity last_ = Activity::kAlive;  // that was not between
};

}  // namespace muster
