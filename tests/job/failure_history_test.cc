// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/failure_history.h"

#include <doctest/doctest.h>

#include "supervisor/cli/failure_policy.h"

namespace muster {

namespace {

using namespace std::chrono_literals;

event::FailureFound failed(const std::string& message, int rank = 0, int signal = 0) {
  event::FailureFound failure;
  failure.kind = signal != 0 ? "killed" : "python_exception";
  failure.message = message;
  failure.rank = rank;
  failure.signal = signal;
  failure.exit_code = signal != 0 ? 128 + signal : 1;
  return failure;
}

struct History : FailureHistory {
  Time now{1h};
  int64_t step = -1;  // that the next attempt comes to
  void fails(const std::string& message, std::chrono::milliseconds ran = 1s, int rank = 0,
             int signal = 0) {
    add(failed(message, rank, signal), {now, now + ran, step}, 10min);
    now += ran;
  }
};

}  // namespace

TEST_CASE("what a program says is the cause, whatever rank says it and with whatever numbers") {
  CHECK(cause_of(failed("ValueError: bad batch 17 (train.py:41)", 0)) ==
        cause_of(failed("ValueError: bad batch 2048 (train.py:41)", 5)));
  CHECK(cause_of(failed("at 0x7f2a91")) == cause_of(failed("at 0x55e0bc")));
  CHECK(cause_of(failed("ValueError: bad batch")) != cause_of(failed("ValueError: bad shape")));
  event::FailureFound code = failed("exited with code 3");
  code.exit_code = 3;
  CHECK(cause_of(code) != cause_of(failed("exited with code 1")));
}

TEST_CASE("a signal is the same cause only for the same rank") {
  CHECK(cause_of(failed("killed by SIGKILL (signal 9)", 2, 9)) ==
        cause_of(failed("killed by SIGKILL (signal 9)", 2, 9)));
  CHECK(cause_of(failed("killed by SIGKILL (signal 9)", 2, 9)) !=
        cause_of(failed("killed by SIGKILL (signal 9)", 3, 9)));
}

TEST_CASE("only failures of one cause within the time are the same") {
  History history;
  CHECK(history.same() == 0);
  history.fails("a");
  history.fails("b");
  CHECK(history.same() == 1);
  history.fails("a", 4min);
  CHECK(history.same() == 2);
  history.fails("a", 5min);
  CHECK(history.same() == 3);
  history.fails("a", 2min);
  CHECK(history.same() == 3);  // the first is too long ago
}

TEST_CASE("a row of failures ends with a steady run") {
  History history;
  for (int i = 1; i <= 3; ++i) {
    history.fails("a", 9min);
    CHECK(history.in_a_row() == i);
  }
  history.fails("a", FailureHistory::kSteadyRun);
  CHECK(history.in_a_row() == 1);
}

TEST_CASE("an attempt that came further than all others begins a new row") {
  History history;
  history.step = 10;
  history.fails("a");
  history.step = 40;
  history.fails("a");
  CHECK(history.same() == 1);
  CHECK(history.in_a_row() == 1);
  for (int step : {40, 30, -1}) {
    history.step = step;
    history.fails("a");
  }
  CHECK(history.same() == 4);
  CHECK(history.in_a_row() == 4);
  history.step = 41;
  history.fails("a");
  CHECK(history.same() == 1);
}

TEST_CASE("no more failures are remembered than can count") {
  History history;
  for (int i = 0; i < kMaxSameFailures + 50; ++i)
    history.fails("a", 1ms);
  CHECK(history.same() == kMaxSameFailures);
  CHECK(history.in_a_row() == kMaxSameFailures);
}

}  // namespace muster
