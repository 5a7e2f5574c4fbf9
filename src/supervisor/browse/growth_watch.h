// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "loop/file_watch.h"
#include "loop/loop.h"
#include "loop/timer.h"

namespace muster {

// Says once that a log may have grown, come into being or gone: by a watch of the file, of its
// folder while there is none, and by a timer where the kernel cannot tell. Owned by a follower.
class GrowthWatch {
 public:
  static constexpr Milliseconds kPeriod{1'000};

  // `watchable` false: the kernel will not tell.
  GrowthWatch(Loop& loop, const std::string& path, bool watchable, std::function<void()> on_change);

 private:
  Owned<FileWatch> watch_;
  Owned<Timer> timer_;
};

}  // namespace muster
