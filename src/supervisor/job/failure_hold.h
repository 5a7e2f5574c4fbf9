// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/evidence/surroundings.h"
#include "supervisor/job/recorder.h"
#include "supervisor/logs/job_logs.h"
#include "supervisor/workers/worker_pages.h"

namespace muster {

// How long the others may go on at most when what failed first shows only what another's failure
// did to it. A culprit that still dumps its core or runs its destructors would else be ended by our
// signal, and its own end never be seen. Part of the second in which a failure is explained.
inline constexpr Milliseconds kCulpritPatience{600};

// Between an attempt's first failure and the stop of the others: looks at what the failed worker
// wrote, and if that is a victim, waits a moment for whoever made it one. Owned by the job, from
// that failure to the stop.
class FailureHold {
 public:
  struct Parts {
    Loop& loop;
    const Recorder& recorder;
    const JobLogs& logs;
    const WorkerPages& pages;
    const Surroundings& surroundings;
    const FailureRules* failure_rules = nullptr;
  };

  // `on_over` is called once, from the loop, never from inside a call: with the rank to tell of,
  // the culprit's if he has died by now.
  FailureHold(const Parts& parts, std::function<void(int rank)> on_over);
  ~FailureHold();

  // Its main process ended, and not with 0.
  void died(int rank);
  // Nothing more will come of what it wrote.
  void closed(int rank);
  // Nobody is left who could have done it.
  void give_up();

  // The first that failed.
  int first() const { return first_; }

 private:
  void look(int rank);
  void over(int rank);

  Parts parts_;
  std::function<void(int)> on_over_;
  int first_ = -1;
  Owned<Timer> patience_;
  Owned<Timer> over_;
  std::map<int, Owned<Timer>> last_words_;                      // by rank
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // guards callbacks of the pool
};

}  // namespace muster
