// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/rendezvous/coordinator.h"
#include "supervisor/rendezvous/roster.h"

namespace muster {

// How many of those who are here are named in a line.
inline constexpr size_t kMaxHostsNamed = 8;

// The first waiting nodes as "a (8)", at most kMaxHostsNamed.
std::vector<std::string> waiting_hosts(const Roster& roster);
// "have a (8), b (8) and 3 more"; "have none".
std::string have_text(const Roster& roster);

// "a, b, ...", at most kMaxHostsNamed.
std::string join_names(const std::vector<std::string>& names);

// "09:41", "1:02:03"; begun seconds count.
std::string countdown_text(std::chrono::milliseconds left);

// What the job waits for. `left` is the time until it gives up or, with MIN nodes here, begins.
//   2 of 4 nodes: have a (8), b (8); waiting for 2 more, 09:41 left
//   3 of 2:4 nodes: have a (8), b (8), c (8); starting in 12 s unless 1 more joins
event::NodesAwaited awaited_now(const Roster& roster, const JobTerms& terms,
                                std::chrono::milliseconds left);

// When the wait is recorded and when it is told to those who wait: recorded whenever who is here
// changes, but a storm of joiners costs no more than four lines a second, and every ten seconds;
// told only if it lasts, since a message to each of n nodes for each of n joiners is n squared.
class AwaitedPace {
 public:
  using Time = Coordinator::Time;

  void began(Time now);
  void changed() { changed_ = true; }

  // Whether it is time to; the answer true means that it is done now.
  bool record_due(Time now);
  bool broadcast_due(Time now);

  Time wake_at() const;

 private:
  Time next_record() const;
  Time next_broadcast() const;

  Time began_{};
  bool changed_ = false;
  std::optional<Time> recorded_;
  std::optional<Time> told_;
};

}  // namespace muster
