// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "loop/loop.h"

namespace muster {

// Owns a loop for one test. The loop's destructor aborts on a forgotten handle, so every loop test
// is also a leak test. Declare it before whatever lives in the loop.
struct LoopTest {
  Loop loop;

  // Generous: a deadline says "hung", never "slow".
  bool run_until(const std::function<bool()>& done, Milliseconds deadline = Milliseconds(20'000)) {
    return loop.run_until(done, deadline);
  }
};

}  // namespace muster
