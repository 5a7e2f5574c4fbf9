// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "supervisor/job/event.h"

namespace muster {

// What a failure has in common with the next one of the same cause: its kind, its exit code and
// its message without the numbers in it. A signal says nothing of the cause, so there it must be
// the same rank again.
std::string cause_of(const event::FailureFound& failure);

// The failures of the attempts so far, to tell a job that fails again and again from one that goes
// on in between. A value; owned by the coordinator.
class FailureHistory {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // An attempt that ran so long begins a new row of failures.
  static constexpr std::chrono::minutes kSteadyRun{10};

  struct Attempt {
    Time began{};
    Time ended{};
    int64_t step = -1;  // the highest that its workers told of, -1: none
  };

  // The failure of an attempt. What lies further back than `window` is forgotten, and everything
  // before an attempt that came further than all others.
  void add(const event::FailureFound& failure, const Attempt& attempt,
           std::chrono::milliseconds window);

  int same() const;  // failures of the last one's cause that are not forgotten
  int in_a_row() const { return in_a_row_; }

 private:
  friend struct CoordinatorFingerprint;  // of the test that explores all states
  struct Failure {
    std::string cause;
    Time at{};
  };
  std::deque<Failure> failures_;  // at most kMaxSameFailures
  int in_a_row_ = 0;
  int64_t furthest_ = -1;
};

}  // namespace muster
