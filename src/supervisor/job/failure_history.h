// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
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

  // A failure now, of an attempt that began then. What lies further back than `window` is
  // forgotten.
  void add(const event::FailureFound& failure, Time began, Time now,
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
};

}  // namespace muster
