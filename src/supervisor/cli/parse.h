// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "supervisor/cli/environment.h"
#include "supervisor/cli/options.h"

namespace muster {

// The command line asks for a text (--help, --version, --print-completion: code 0) or is wrong
// (code 2): print and exit.
struct EarlyExit {
  int code = 0;
  std::string out;
  std::string err;
};

using Parsed = std::variant<Options, EarlyExit>;

// Reads muster's command line, argv[0] included, with PET_* variables as defaults. Looks at nothing
// but its arguments. Not for use from several threads: getopt keeps its place in globals.
Parsed parse(const std::vector<std::string>& argv, const Environment& environment);

}  // namespace muster
