// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/cli/command_options.h"

namespace muster {

// `muster status`, `muster logs`, `muster dump`, `muster view`: each runs a loop of its own to its
// end and returns what muster exits with. What goes wrong has been said on stderr by then.

int run_command(const CommandOptions& options);

int run_status(const CommandOptions& options);
int run_watch(const CommandOptions& options);  // status --watch
int run_logs(const CommandOptions& options);
int run_dump(const CommandOptions& options);
int run_view(const CommandOptions& options);

}  // namespace muster
