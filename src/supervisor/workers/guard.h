// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/unique_fd.h"
#include "supervisor/job/event.h"

namespace muster {

// muster runs as two processes. The *front* is the one the user started: it has the terminal, the
// pid that the shell knows, and nothing to do but relay signals and wait. The *supervisor* is its
// child, in a session of its own, and does all the work. Both are child subreapers. Whichever dies,
// the other ends every descendant: kill -9 of the front (or of its whole process group) reaches the
// supervisor as the end of their socket; a dead supervisor's workers and their daemonised
// descendants become the front's children, which it kills before it exits.

// The supervisor's end.
struct GuardLink {
  UniqueFd socket;  // carries one record per signal that the front received
  int front_pid = 0;
};

// Forks. Returns in the supervisor only; the front stays in here and exits with the supervisor's
// exit status. `signals` are relayed; a signal ignored at start (nohup) stays ignored. Call before
// any thread or Loop exists.
GuardLink split_off_supervisor(const std::vector<int>& signals);

// Reads the link in the loop. Owned by the supervisor's main.
class GuardChannel {
 public:
  struct Callbacks {
    std::function<void(const event::SignalReceived&)> on_signal;
    std::function<void()> on_front_lost;  // the front was killed: end everything now
  };
  GuardChannel(Loop& loop, GuardLink link, Callbacks callbacks);
  ~GuardChannel();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
