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

// The heartbeats of one joined connection: sends them, and notices when nothing comes back. Owned
// by RemoteLink for as long as the connection lasts.
class Heart {
 public:
  struct Rate {
    Milliseconds interval{1'000};
    int misses = 3;
    Milliseconds patience() const { return interval * misses; }
  };

  // The first one goes out at once; `send` is the only one that is called from inside a call.
  Heart(Loop& loop, Rate rate, std::function<void()> send, std::function<void()> on_silence);

  // Something came from the coordinator.
  void heard();
  Clock::time_point last_heard() const { return last_heard_; }

 private:
  void wait_for_word(Milliseconds time);
  void on_quiet();

  Loop& loop_;
  const Rate rate_;
  std::function<void()> on_silence_;
  Owned<Timer> beat_;
  Owned<Timer> quiet_;
  Clock::time_point last_heard_;
  Clock::time_point quiet_due_;
};

}  // namespace muster
