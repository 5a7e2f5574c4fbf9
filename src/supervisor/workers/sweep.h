// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "loop/loop.h"
#include "supervisor/job/event.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

// What muster starts for itself (supervisor/stacks) stays in its session; workers begin their own,
// and nobody can go back into an older one.
bool is_musters_own(const ProcStat& found);

// Ends what workers leave behind: background children, daemons in sessions of their own, whatever
// those start meanwhile. It looks for descendants of this process, which is their subreaper, so
// nothing that a worker did not start is ever touched. Owned by a WorkerGroup, which says when.
class Sweep {
 public:
  struct Sent {
    int pid = 0;
    int signal = 0;
  };

  // What runtimes keep beside a worker (Python's resource tracker) ends by itself as soon as it
  // sees that the worker is gone. Only what has not done so after this time is worth a signal other
  // than SIGKILL, and a line in the report.
  static constexpr Milliseconds kOwnEnd{50};

  // Sends `signal`, once each, to every descendant that `wanted` accepts and that is no zombie;
  // `spared` ones and what is below them are not looked at. With SIGKILL it goes to their process
  // groups too and looks again until it finds nobody new, so that those who fork lose.
  std::vector<Sent> pass(int signal, const std::set<int>& spared,
                         const std::function<bool(const ProcStat&)>& wanted);

  // Whether the last pass left somebody that time: then another is due when it is over.
  bool waiting() const { return waiting_; }

  // How it ended, for the report: those that were there when first signalled and are gone, and
  // those that are still there. Capped at kMaxReported, the last entry then counts the rest.
  std::vector<event::LeftoverFound> report() const;

  static constexpr size_t kMaxReported = 64;

 private:
  struct Target {
    ProcStat stat;
    Clock::time_point first_seen{};
    int signal = 0;  // the last one sent
    int error = 0;   // errno of the last sending
  };
  bool signal_once(const ProcStat& found, int signal);

  std::map<int, Target> targets_;  // by pid
  std::vector<Target> replaced_;   // whose pid came again
  bool waiting_ = false;
};

}  // namespace muster
