// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "loop/result.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/options.h"

namespace muster {

// What each worker executes.
struct Program {
  std::string executable;         // path for execve
  std::vector<std::string> argv;  // ${local_rank} not substituted yet
  std::string name;               // for the report
};

// Chooses between Python and direct execution and finds the file, before anything is started. The
// error's code is 127 (missing) or 126 (cannot be executed). A Python script that does not exist is
// no error here: Python says so itself and exits with 2.
Result<Program> resolve_program(const Options& options, const Environment& environment,
                                const std::string& host);

// `${local_rank}` and `$local_rank` become the number; everything else, `$$` included, stays.
std::string substitute_local_rank(std::string_view text, int local_rank);

}  // namespace muster
