// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
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
// descendants become the front's children, which it kills before it exits. A supervisor that hangs
// (an executable on a file system that does not answer) is killed by the front when a stop signal
// stays unread for 30 seconds, or for 2 and then another comes.

// The supervisor's end.
struct GuardLink {
  UniqueFd socket;   // carries one record per signal that the front received
  UniqueFd signals;  // signalfd for those that are sent to the supervisor itself
  int front_pid = 0;
};

// Forks. Returns in the supervisor only; the front stays in here and exits with the supervisor's
// exit status. `signals` are relayed, SIGUSR1 and SIGUSR2 always; SIGHUP ignored at start (nohup)
// stays ignored, and what is not relayed keeps its default effect on the front. Call before any
// thread or Loop exists, and use main's argv no more: its strings are overwritten.
GuardLink split_off_supervisor(const std::vector<int>& signals);

// Reads the link in the loop. Owned by the supervisor's main.
class GuardChannel {
 public:
  struct Callbacks {
    // `sender` reads "alice, scancel", or "outside the container" without a pid. A signal that
    // somebody sent to both processes (pkill -f, a service manager that signals the whole cgroup)
    // is told once.
    std::function<void(const event::SignalReceived&)> on_signal;
    std::function<void()> on_front_lost;  // the front was killed: end everything now
  };
  GuardChannel(Loop& loop, GuardLink link, Callbacks callbacks);
  ~GuardChannel();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The name of `uid` in a passwd file, empty if it has none. Names are looked up in the file alone:
// the C library might ask a server over the network, and the loop would wait.
std::string user_name(unsigned uid, std::string_view passwd);

}  // namespace muster
