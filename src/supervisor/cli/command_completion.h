// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace muster {

// The commands' part of the completion scripts (cli/completion), made from the command table.

// Statements for the top of the completing function. On a line that begins with a command they
// complete it and return; while the first word is written they offer the commands besides files.
std::string bash_commands();
std::string zsh_commands();

std::string fish_commands();  // whole lines

}  // namespace muster
