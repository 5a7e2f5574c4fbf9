// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/fold.h"

#include <doctest/doctest.h>

#include <vector>

#include "supervisor/cli/ranges.h"

namespace muster {

namespace {

struct Folded {
  Fold fold{3};
  Clock::time_point now{};
  std::vector<std::string> shown;

  Fold::Emit emit() {
    return [this](const std::set<int>& ranks, std::string_view line) {
      shown.push_back(format_ranges({ranks.begin(), ranks.end()}) + " " + std::string(line));
    };
  }
  void add(int rank, std::string_view line) { fold.add(rank, line, now, emit()); }
  void pass(Milliseconds time) {
    now += time;
    fold.advance(now, emit());
  }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("ranks are written as ranges") {
  CHECK(format_ranges({8, 0, 1, 2, 3, 5, 7, 8}) == "0-3,5,7-8");
  CHECK(format_ranges({4}) == "4");
}

TEST_CASE_FIXTURE(Folded, "a line that all ranks have said is shown at once") {
  add(0, "hi\n");
  add(2, "hi\n");
  CHECK(shown.empty());
  add(1, "hi\n");
  CHECK(shown == Lines{"0-2 hi\n"});
}

TEST_CASE_FIXTURE(Folded, "what only some have said is shown when the time is over") {
  add(0, "hi\n");
  add(2, "hi\n");
  pass(Milliseconds(99));
  CHECK(shown.empty());
  pass(Milliseconds(1));
  CHECK(shown == Lines{"0,2 hi\n"});
  add(1, "hi\n");
  pass(Fold::kWindow);
  CHECK(shown == Lines{"0,2 hi\n", "1 hi\n"});
}

TEST_CASE_FIXTURE(Folded, "what differs is never hidden") {
  add(0, "loss 1\n");
  add(1, "loss 2\n");
  add(2, "loss 1\n");
  pass(Fold::kWindow);
  CHECK(shown == Lines{"0,2 loss 1\n", "1 loss 2\n"});
}

TEST_CASE_FIXTURE(Folded, "a rank that repeats itself is shown as often as it spoke") {
  add(0, "x\n");
  add(0, "x\n");
  add(1, "x\n");
  pass(Fold::kWindow);
  CHECK(shown == Lines{"0 x\n", "0-1 x\n"});
}

TEST_CASE_FIXTURE(Folded, "the lines of one rank keep their order") {
  add(0, "a\n");
  add(1, "b\n");
  add(1, "a\n");  // must not join the group before its own "b"
  add(0, "b\n");
  pass(Fold::kWindow);
  CHECK(shown == Lines{"0 a\n", "0-1 b\n", "1 a\n"});
}

TEST_CASE_FIXTURE(Folded, "a flush shows everything that a rank has said") {
  add(0, "a\n");
  add(1, "b\n");
  add(2, "c\n");
  fold.flush(1, emit());
  CHECK(shown == Lines{"0 a\n", "1 b\n"});
  fold.flush(-1, emit());
  CHECK(shown.back() == "2 c\n");
  CHECK(fold.empty());
}

TEST_CASE_FIXTURE(Folded, "little is held") {
  std::string line(1000, 'x');
  for (int i = 0; i < 5000; ++i)
    add(0, std::to_string(i) + line + "\n");
  CHECK(shown.size() >= 5000 - Fold::kHoldLimit / 1000);
}

}  // namespace muster
