// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "supervisor/cli/plan.h"

namespace muster {

// What --dry-run prints: per worker its command, the environment added, CPU binding and log files.
std::string dry_run_text(const LaunchPlan& plan);

}  // namespace muster
