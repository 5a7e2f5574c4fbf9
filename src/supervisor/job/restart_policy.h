// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "supervisor/job/event.h"

namespace muster {

struct RestartBudget {
  int used = 0;
  int max = 0;                  // --max-restarts
  bool restart_always = false;  // --restart-always: also for what cannot heal
  bool left_running = false;    // something of the failed attempt could not be ended
};

struct RestartDecision {
  bool restart = false;
  std::string reason;  // "restarting (attempt 2 of 3)", "no restart was allowed (--max-restarts 0)"
};

// What follows a failed attempt. A stop by signal never comes here: nothing follows it.
RestartDecision decide_restart(const event::FailureFound& root_cause, const RestartBudget& budget);

}  // namespace muster
