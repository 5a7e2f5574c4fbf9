// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

// How often an agent tells what was measured of its workers, while nobody looks.
inline constexpr Milliseconds kSampleInterval{10'000};

// Tells the coordinator now and then what was measured of this node's workers; more often for a
// while after it said that somebody looks. Nodes do so at different moments, so that thousands do
// not come at once. Owned by RemoteLink.
class SamplePush {
 public:
  struct Callbacks {
    std::function<std::vector<RankSample>()> take;
    // False: the connection has too much to send already, and these are left out.
    std::function<bool(message::Samples)> send;
  };

  // Without `take` it never tells anything.
  SamplePush(Loop& loop, Callbacks callbacks, Milliseconds interval = kSampleInterval);

  // It now has that part of an attempt.
  void assigned(const Assignment& assignment);
  void watch(const message::Watch& watch);
  // Nothing is told until resume().
  void pause();
  void resume();

 private:
  Milliseconds interval() const;
  void arm(Milliseconds wait);
  void push();

  Loop& loop_;
  const Callbacks callbacks_;
  const Milliseconds idle_interval_;
  Milliseconds watched_interval_{0};
  Clock::time_point watched_until_{};
  Clock::time_point due_{};
  int attempt_ = -1;
  int node_ = 0;
  Owned<Timer> timer_;
};

}  // namespace muster
