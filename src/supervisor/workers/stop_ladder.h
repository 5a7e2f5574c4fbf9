// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "loop/loop.h"

namespace muster {

// Who a step's signal goes to, among workers that still live. What a dead worker left behind gets
// it in either case.
enum class StopTarget { kNobody, kProcess, kGroup };

struct StopStep {
  int signal = 0;  // 0: only wait
  StopTarget target = StopTarget::kNobody;
  Milliseconds wait{0};  // until the next step
};

// `signal` to the workers, SIGKILL to their groups after `term_to_kill`.
std::vector<StopStep> stop_steps(int signal, Milliseconds term_to_kill,
                                 Milliseconds kill_to_giving_up);
std::vector<StopStep> kill_steps(Milliseconds kill_to_giving_up);
// For what outlived workers that nobody stopped.
std::vector<StopStep> leftover_steps(Milliseconds natural_end, Milliseconds grace,
                                     Milliseconds kill_to_giving_up);

// Which step is due when. Knows no process and no clock but the times it is handed.
class StopLadder {
 public:
  void begin(std::vector<StopStep> steps, Clock::time_point now);

  // The next step if it is due; each comes once.
  std::optional<StopStep> take_due(Clock::time_point now);

  // The present step lasts at least `wait` from now.
  void extend(Milliseconds wait, Clock::time_point now);

  // The last wait is over as well.
  bool exhausted(Clock::time_point now) const;

  bool begun() const { return !steps_.empty(); }

  // When take_due() or exhausted() has news.
  Clock::time_point due() const { return due_; }

 private:
  std::vector<StopStep> steps_;
  size_t next_ = 0;
  Clock::time_point due_{};
};

}  // namespace muster
