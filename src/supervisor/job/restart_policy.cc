// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/restart_policy.h"

namespace muster {

RestartDecision decide_restart(const event::FailureFound& root_cause, const RestartBudget& budget) {
  if (budget.max <= 0) return {false, "no restart was allowed (--max-restarts 0)"};
  if (budget.used >= budget.max) {
    return {false, budget.max == 1 ? "the one restart was used"
                                   : "all " + std::to_string(budget.max) + " restarts were used"};
  }
  if (budget.left_running) {
    return {false, "not restarted: something of this attempt is still running"};
  }
  if (!root_cause.can_heal && !budget.restart_always) {
    return {false, "not retried: " + root_cause.kind +
                       " cannot heal by itself (--restart-always retries all the same)"};
  }
  return {true, "restarting (attempt " + std::to_string(budget.used + 2) + " of " +
                    std::to_string(budget.max + 1) + ")"};
}

}  // namespace muster
