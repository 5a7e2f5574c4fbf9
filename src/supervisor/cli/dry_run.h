// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "supervisor/cli/plan.h"

namespace muster {

// What --dry-run prints: per worker its command, the environment added, CPU binding and log files.
std::string dry_run_text(const LaunchPlan& plan);

// `word` so that a shell reads it as one word, quoted only if it has to be.
std::string shell_quoted(std::string_view word);

}  // namespace muster
