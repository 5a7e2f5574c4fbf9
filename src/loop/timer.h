// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "loop/handle.h"
#include "loop/loop.h"

namespace muster {

// Calls back once after a delay, or again and again. Owned by whoever waits; dropping it cancels.
class Timer : public Handle {
 public:
  // Once, `delay` from now.
  static Owned<Timer> start(Loop& loop, Milliseconds delay, std::function<void()> on_time);

  // Every `period`, first one period from now.
  static Owned<Timer> repeat(Loop& loop, Milliseconds period, std::function<void()> on_time);

  // A housekeeping timer does not keep the loop running.
  virtual void unref() = 0;
};

}  // namespace muster
