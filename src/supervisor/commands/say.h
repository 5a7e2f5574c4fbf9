// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "loop/result.h"

namespace muster {

// What a command says, on stderr: "muster: text".
void say(std::string_view text);

// Says what went wrong in `command` and returns the error's code, which is the one to exit with.
int fail(std::string_view command, const Error& error);

// Writes to stdout as a whole. Whoever read it and went away (`| head`) ends the process quietly,
// any other trouble ends it with a word and kExitBad.
void print(std::string_view text);

}  // namespace muster
