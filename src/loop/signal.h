// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "loop/handle.h"
#include "loop/loop.h"

namespace muster {

// Calls back in the loop for every delivery (coalesced as the kernel does) of one signal.
class SignalWatch : public Handle {
 public:
  static Owned<SignalWatch> start(Loop& loop, int signal, std::function<void()> on_signal);

  // Does not keep the loop running.
  virtual void unref() = 0;
};

}  // namespace muster
