// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "supervisor/cli/failure_policy.h"
#include "supervisor/diagnosis/failure_rules.h"
#include "supervisor/job/event.h"

namespace muster {

// What the user wants.
struct RestartRules {
  int max = 0;                  // --max-restarts
  bool restart_always = false;  // --restart-always: also for what cannot heal
  FailurePolicy policy;
  SameFailureLimit same_limit;
  RestartBackoff backoff;
};

// Where the job stands. The counts are FailureHistory's and hold the failure in question.
struct RestartSituation {
  int used = 0;
  bool charged = true;  // workers are to blame, not the loss of a node: it is one of the budget
  bool left_running = false;     // something of the failed attempt could not be ended
  int same = 1;                  // failures of the same cause within the limit's time
  int in_a_row = 1;              // failures without a steady run between them
  std::string cannot_exclude{};  // why the failure's node cannot be left out, "" if it can
};

struct RestartDecision {
  bool restart = false;
  std::string reason;  // "restarting (attempt 2 of 3)", "no restart was allowed (--max-restarts 0)"
  bool charged = true;   // it is one of the budget
  bool exclude = false;  // ... without the failure's node
  std::chrono::milliseconds delay{0};
};

// What follows a failed attempt, or a lost node. A stop by signal never comes here: nothing follows
// it.
RestartDecision decide_restart(const event::FailureFound& root_cause, const RestartRules& rules,
                               const RestartSituation& situation);

// A warning for each kind that the policy names and no failure has, not even one of the user's own.
std::vector<std::string> policy_warnings(const FailurePolicy& policy, const FailureRules& own);

// How long the last of so many failures in a row puts the restart off.
std::chrono::milliseconds restart_delay(const RestartBackoff& backoff, int in_a_row);

}  // namespace muster
