// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/cli/plan.h"
#include "supervisor/workers/guard.h"

namespace muster {

// What main hands over besides the plan.
struct Launch {
  LaunchPlan plan;
  std::vector<std::string> command;  // muster's own argv
};

// Runs the whole job in the supervisor's process and returns muster's exit code. Everything has
// been said by then: live lines, the report, summary.json, the launcher's own error file.
int supervise(const Launch& launch, GuardLink link);

}  // namespace muster
