// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/cli/command_options.h"
#include "supervisor/cli/parse.h"

namespace muster {

using ParsedCommand = std::variant<CommandOptions, EarlyExit>;

// Reads a command line such as `muster logs -f`, argv[0] included. Nothing if it starts a job: a
// command is the first word or none (a script of that name is given as ./logs, or behind --), and
// under the name torchrun there are none. Not for use from several threads, as parse().
std::optional<ParsedCommand> parse_command(const std::vector<std::string>& argv);

}  // namespace muster
