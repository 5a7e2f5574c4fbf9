// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace muster {

// Prints file, line, the expression and errno, then aborts. For our own mistakes only: what a peer,
// a worker or a user does is never one.
[[noreturn]] void check_failed(const char* file, int line, const char* expression);

}  // namespace muster

// Kept in release builds: a supervisor that goes on with broken state kills the wrong process.
// (Named so that it can stand beside doctest's CHECK.)
#define MUST(expression) \
  (static_cast<bool>(expression) ? void() : ::muster::check_failed(__FILE__, __LINE__, #expression))
