// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/stop_ladder.h"

#include <signal.h>

#include <algorithm>

namespace muster {

std::vector<StopStep> stop_steps(int signal, Milliseconds term_to_kill,
                                 Milliseconds kill_to_giving_up) {
  return {{signal, StopTarget::kProcess, term_to_kill},
          {SIGKILL, StopTarget::kGroup, kill_to_giving_up}};
}

std::vector<StopStep> kill_steps(Milliseconds kill_to_giving_up) {
  return {{SIGKILL, StopTarget::kGroup, kill_to_giving_up}};
}

std::vector<StopStep> leftover_steps(Milliseconds natural_end, Milliseconds grace,
                                     Milliseconds kill_to_giving_up) {
  return {{0, StopTarget::kNobody, natural_end},
          {SIGTERM, StopTarget::kProcess, grace},
          {SIGKILL, StopTarget::kGroup, kill_to_giving_up}};
}

void StopLadder::begin(std::vector<StopStep> steps, Clock::time_point now) {
  steps_ = std::move(steps);
  next_ = 0;
  due_ = now;
}

std::optional<StopStep> StopLadder::take_due(Clock::time_point now) {
  if (next_ == steps_.size() || now < due_) return std::nullopt;
  const StopStep step = steps_[next_++];
  // From now, not from when it was due: a process gets its whole time even if we were held up.
  due_ = now + step.wait;
  return step;
}

void StopLadder::extend(Milliseconds wait, Clock::time_point now) {
  due_ = std::max(due_, now + wait);
}

bool StopLadder::exhausted(Clock::time_point now) const {
  return begun() && next_ == steps_.size() && now >= due_;
}

}  // namespace muster
