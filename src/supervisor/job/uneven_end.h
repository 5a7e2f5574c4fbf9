// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/job/recorder.h"

namespace muster {

// A rank that returned early and others that wait for it look like a hang: says so, once, when some
// have finished and others still run a while later. Owned by the supervisor's main, which hands it
// every event.
class UnevenEndWatch {
 public:
  UnevenEndWatch(Loop& loop, const Recorder& recorder,
                 std::function<void(const std::string& line)> say);

  void observe(const Event& event);

 private:
  Loop& loop_;
  const Recorder& recorder_;
  std::function<void(const std::string&)> say_;
  Owned<Timer> timer_;
};

}  // namespace muster
