// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>

#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

// Unix time in microseconds.
int64_t unix_us();

// How far the coordinator's clock is from ours, as the fastest of the last round trips says.
class ClockOffset {
 public:
  void add(int64_t sent_us, int64_t theirs_us, int64_t received_us);
  int64_t us() const;

 private:
  struct Sample {
    int64_t offset_us;
    int64_t round_trip_us;
  };
  std::deque<Sample> samples_;
};

// The heartbeats of one joined connection: sends them, and notices when no echo comes. Owned by
// RemoteLink for as long as the connection lasts.
//
// An echo proves that the coordinator has heard us, and counts from the time when what it echoes
// was sent: so this end runs out of patience before the other one does, whose count begins when a
// heartbeat arrives, and no worker goes on here that has been given up there.
class Heart {
 public:
  struct Rate {
    Milliseconds interval{1'000};
    int misses = 3;
    Milliseconds patience() const { return interval * misses; }
  };

  // The first one goes out at once; `send` (with the unix time that its echo will bring back) is
  // the only one that is called from inside a call.
  Heart(Loop& loop, Rate rate, std::function<void(int64_t sent_us)> send,
        std::function<void()> on_silence);

  void echoed(int64_t sent_us);

  // When the last heartbeat was sent that arrived; before the first one, when this began.
  Clock::time_point last_known() const { return last_known_; }

 private:
  struct Beat {
    int64_t sent_us;
    Clock::time_point sent;
  };
  void beat();
  void wait_until(Clock::time_point time);
  void on_quiet();

  Loop& loop_;
  const Rate rate_;
  std::function<void(int64_t)> send_;
  std::function<void()> on_silence_;
  Owned<Timer> beat_;
  Owned<Timer> quiet_;
  std::deque<Beat> beats_;  // without an echo yet
  Clock::time_point last_known_;
  Clock::time_point quiet_due_;
};

}  // namespace muster
