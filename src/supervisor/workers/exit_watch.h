// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "loop/fd_watch.h"
#include "loop/loop.h"
#include "loop/unique_fd.h"

namespace muster {

// Learns the deaths of our children in the order in which they happened. Owned by a WorkerGroup.
//
// It has an epoll descriptor of its own inside the loop's: libuv tells epoll about a new descriptor
// only when it next waits, and children that died before that would come in the order of their
// creation. Here a pidfd is registered as soon as its process exists.
class ExitWatch {
 public:
  struct Death {
    int pid = 0;
    int wait_status = 0;
    int64_t max_rss_kib = 0;
  };

  // `on_deaths` says, from the loop, that reap() has something.
  ExitWatch(Loop& loop, std::function<void()> on_deaths);

  void add(int pid, UniqueFd pidfd);

  // Reaps those that are dead, the first death first. Their pids are free for reuse from here on.
  // One that is traced (strace, gdb) can only be reaped when its tracer lets go of it: then SIGCHLD
  // comes, and this is to be asked again.
  std::vector<Death> reap();

 private:
  UniqueFd epoll_;
  std::map<int, UniqueFd> pidfds_;  // by pid
  std::vector<int> dead_;           // pids in the order of death, until they can be reaped
  Owned<FdWatch> watch_;            // goes before the descriptor that it watches
};

}  // namespace muster
