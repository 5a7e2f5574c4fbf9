// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "loop/result.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/options.h"

namespace muster {

// The secret of the job, "" for none.
struct Token {
  std::string text;
  std::string warning;  // about who else can read it, "" if there is nothing to say
};

// --token-file, else MUSTER_TOKEN. An Error's code is 2, its message a whole line without the
// token.
Result<Token> read_token(const Options& options, const Environment& environment);

// The variable is for muster alone: workers and what they start must not inherit it.
void remove_token(Environment& environment);

// Overwrites it in this process's own environment, which /proc shows to everything that runs as the
// same user, workers included.
void hide_own_token();

}  // namespace muster
