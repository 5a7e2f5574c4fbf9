// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "supervisor/cli/option_table.h"

namespace muster {

// The part of the option table about logs and the console, in the order of the help.
std::vector<OptionSpec> stream_options();
std::vector<OptionSpec> run_folder_options();
std::vector<OptionSpec> console_options();
std::vector<OptionSpec> terminal_options();

}  // namespace muster
