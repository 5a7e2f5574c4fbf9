// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/timer.h"
#include "store/server.h"
#include "supervisor/hang/stall.h"
#include "supervisor/job/state.h"
#include "supervisor/status/rank_sample.h"

namespace muster {

// How often workers are looked at for a --hang-timeout (0: there is none).
Milliseconds look_interval(Milliseconds hang_timeout);

// Looks after the job's progress where the coordinator is, and records when it stands still and
// when it goes on. Costs nothing between its looks, which take what was measured anyway. Owned by
// the supervisor's main.
class StallWatch {
 public:
  struct Parts {
    std::function<const JobState&()> state;
    std::function<bool()> hosting;
    std::function<std::vector<RankSample>()> samples;  // of all ranks
    std::function<void()> hurry;                       // all nodes are to look again soon
    std::function<std::vector<StoreWaiter>()> store_waiters;
    std::function<void(EventBody)> record;
    // It stands still: once for each stall, after the event.
    std::function<void(const Stall&)> on_stall{};
  };
  // How often one stall is told of at most, each time because it looks another way.
  static constexpr int kMaxTold = 8;

  // `hang_timeout` 0: it never looks.
  StallWatch(Loop& loop, Milliseconds hang_timeout, Parts parts);

  // Whether that attempt still stands still.
  bool stalled(int attempt) const { return seen_ && seen_->attempt == attempt; }

  // What its stacks tell of the stall that lasts; those who differ by them are recorded.
  Stall look_closer(const std::vector<event::EvidenceSaved>& saved);

  // Calls `done` from the loop if the stall still lasts by looks that all ranks have had since now,
  // never if it ends before.
  void confirm(std::function<void()> done);

  // For the recorder's observers.
  void observe(const Event& event);

 private:
  void arm();
  void look();
  bool wants_haste(const AttemptState& attempt, const std::vector<RankSigns>& signs) const;
  void begin(Stall stall, int attempt);
  void tell(const Stall& stall);
  void end(const std::vector<RankSigns>& signs);
  void resolve_doubt(const std::vector<RankSigns>& signs, const std::vector<RankSample>& samples);

  Loop& loop_;
  const Milliseconds threshold_;
  const Milliseconds every_;
  Parts parts_;
  struct Seen {
    int attempt = 0;
    Stall stall;
    int64_t since_us = 0;  // unix
    int told = 0;
  };
  struct Doubt {
    int64_t since_us = 0;  // unix
    std::function<void()> done;
  };
  std::optional<Seen> seen_;  // it stands still
  std::optional<Doubt> doubt_;
  bool hurries_ = false;  // it may soon
  Owned<Timer> timer_;
};

}  // namespace muster
