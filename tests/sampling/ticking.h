// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loop/loop_test.h"
#include "loop/timer.h"

namespace muster {

// A loop that looks again and again, for what no event of its own tells.
struct Ticking : LoopTest {
  bool run_until(const std::function<bool()>& done, Milliseconds deadline = Milliseconds(20'000)) {
    Owned<Timer> tick = Timer::repeat(loop, Milliseconds(5), [] {});
    return loop.run_until(done, deadline);
  }
};

}  // namespace muster
