// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "loop/fd_watch.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"

namespace muster {

// Carries what is typed at muster's terminal to the pseudo-terminal of the stdin rank, while muster
// is the terminal's foreground job. Owned by that rank's WorkerStreams.
class StdinRelay {
 public:
  // Null if the terminal cannot be read in this way. `master` is the pseudo-terminal's.
  static std::unique_ptr<StdinRelay> start(Loop& loop, int terminal, int master);

 private:
  explicit StdinRelay(Loop& loop) : loop_(loop) {}

  void read_some();
  void write_some();

  Loop& loop_;
  UniqueFd terminal_;  // opened anew, so that O_NONBLOCK is ours alone
  UniqueFd master_;
  std::string waiting_;  // for the worker to read
  Owned<FdWatch> readable_, writable_;
  Owned<Timer> retry_;
};

}  // namespace muster
