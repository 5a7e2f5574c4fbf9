// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/loop.h"
#include "supervisor/job/event.h"
#include "supervisor/job/state.h"

namespace muster {

// The one place where something that happened becomes an Event: it is numbered and stamped, applied
// to the job's state, and then handed to every observer (events.jsonl, the console, later the HTTP
// API). Owned by the supervisor's main; the job records, everybody else reads.
class Recorder {
 public:
  // `state` already contains the event when an observer sees it.
  using Observer = std::function<void(const JobState& state, const Event& event)>;

  void observe(Observer observer) { observers_.push_back(std::move(observer)); }

  void record(EventBody body);

  // Records a Trouble. Messages of a part begin with its name ("store: bind ..."), which is the
  // subject here.
  void trouble(std::string subject, std::string_view message);

  const JobState& state() const { return state_; }

  // Microseconds since the start, the clock of Event::mono_us.
  int64_t now_us() const;

 private:
  JobState state_;
  std::vector<Observer> observers_;
  Clock::time_point start_ = Clock::now();
  int64_t next_seq_ = 0;
};

}  // namespace muster
