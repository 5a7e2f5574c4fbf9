// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/cli/plan.h"
#include "supervisor/diagnosis/failure_rules.h"
#include "supervisor/workers/guard.h"

namespace muster {

// What main hands over besides the plan.
struct Launch {
  LaunchPlan plan;
  std::vector<std::string> command;  // muster's own argv
  FailureRules failure_rules;
};

// Runs the whole job in the supervisor's process and returns muster's exit code. Everything has
// been said by then: live lines, the report, summary.json, the launcher's own error file.
int supervise(const Launch& launch, GuardLink link);

// For a job that cannot start: writes `message` to the TORCHELASTIC_ERROR_FILE of muster's own
// environment, if there is one. Blocks.
void write_launch_error(const Environment& environment, const std::string& message);

}  // namespace muster
