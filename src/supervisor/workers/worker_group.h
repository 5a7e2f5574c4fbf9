// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/job/event.h"
#include "supervisor/workers/spawn.h"

namespace muster {

// How a worker's main process ended.
struct WorkerEnd {
  int local_rank = 0;
  int pid = 0;
  int wait_status = 0;  // as waitpid gives it
  int64_t max_rss_kib = 0;
};

// A signal that the group sent to a worker, its process group or a descendant (of the latter the
// first 256 are told).
struct SentSignal {
  int local_rank = 0;  // -1: a descendant that no worker owns any more
  int pid = 0;
  int signal = 0;
  bool to_group = false;
  StopReason reason = StopReason::kNone;
};

// The worker processes of one attempt, from spawn until nothing of them is left: their exits in the
// order of death, the stop ladder, and the sweep for descendants that outlived them. Owned by the
// job; made anew for each attempt. All callbacks come from the loop, never from inside a call.
//
// Descendants are found because main makes this process their subreaper. Those that outlive the
// last worker of a stop get its signal at once and what is left of term_to_kill; those of workers
// that nobody stopped get SIGTERM (after natural_end, if all finished with 0), then SIGKILL after
// five seconds or term_to_kill, whichever is shorter. The rest of a dead worker's session gets a
// running stop's signal without waiting for the other workers.
class WorkerGroup {
 public:
  struct Callbacks {
    std::function<void(const WorkerEnd&)> on_exit;
    std::function<void(const SentSignal&)> on_signal_sent;
    // Once, after the last worker was reaped and the sweep is over: nothing is left, or the
    // leftovers say what is and why: those that had to be ended, and those that are still there (a
    // worker whose on_exit never came may be among them).
    std::function<void(std::vector<event::LeftoverFound> found)> on_gone;
  };
  struct Limits {
    Milliseconds term_to_kill{30'000};  // --shutdown-timeout
    Milliseconds kill_to_giving_up{10'000};
    Milliseconds natural_end{1'000};  // for descendants of workers that all finished with 0
    Milliseconds abort_patience{3'000};
  };

  WorkerGroup(Loop& loop, Limits limits, Callbacks callbacks);
  ~WorkerGroup();

  // Starts one worker and registers it at once: a stop from here on includes it.
  Result<int> spawn(int local_rank, SpawnSpec spec);

  // No more spawn() will come: from now on the group may find itself gone.
  void seal();

  // Begins the stop ladder: `signal` to every living worker itself, SIGKILL to its group after
  // term_to_kill. While a stop is running a further call only sends `signal` again. From here on
  // spawn() is refused with ECANCELED. A worker that is already dead, though not yet reported, gets
  // no signal.
  void stop(int signal, StopReason reason);

  // The same, but these workers, which hang, get SIGABRT first: what they write about where they
  // are is the last evidence of them. Whoever lives after `abort_patience` gets `signal` as well.
  void stop(int signal, StopReason reason, const std::set<int>& hung_local_ranks);

  // Straight to SIGKILL for everything, descendants included.
  void kill_now(StopReason reason);

  // Sends a signal to every living worker, and nothing more (USR1, USR2).
  void forward(int signal);

  int running() const;
  bool stopping() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
