// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace muster {

// Says that a part of a test cannot run on this machine. scripts/test collects these lines and
// reports them as skipped; in CI they count as failures.
inline void say_skipped(const std::string& reason) {
  std::printf("SKIPPED: %s\n", reason.c_str());
  std::fflush(stdout);
}

}  // namespace muster
