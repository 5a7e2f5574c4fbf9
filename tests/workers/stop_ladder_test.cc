// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/stop_ladder.h"

#include <doctest/doctest.h>
#include <signal.h>

namespace muster {

namespace {

constexpr Clock::time_point kStart{};

Clock::time_point at(int milliseconds) {
  return kStart + Milliseconds(milliseconds);
}

}  // namespace

TEST_CASE("a stop asks the process, then kills its group, then gives up") {
  StopLadder ladder;
  CHECK_FALSE(ladder.begun());
  CHECK_FALSE(ladder.take_due(at(0)));
  ladder.begin(stop_steps(SIGINT, Milliseconds(100), Milliseconds(50)), at(0));
  auto step = ladder.take_due(at(0));
  REQUIRE(step);
  CHECK(step->signal == SIGINT);
  CHECK(step->target == StopTarget::kProcess);
  CHECK_FALSE(ladder.take_due(at(99)));
  CHECK(ladder.due() == at(100));
  step = ladder.take_due(at(100));
  REQUIRE(step);
  CHECK(step->signal == SIGKILL);
  CHECK(step->target == StopTarget::kGroup);
  CHECK_FALSE(ladder.take_due(at(150)));
  CHECK_FALSE(ladder.exhausted(at(149)));
  CHECK(ladder.exhausted(at(150)));
}

TEST_CASE("without a grace period SIGKILL follows at once") {
  StopLadder ladder;
  ladder.begin(stop_steps(SIGTERM, Milliseconds(0), Milliseconds(50)), at(0));
  CHECK(ladder.take_due(at(0))->signal == SIGTERM);
  CHECK(ladder.take_due(at(0))->signal == SIGKILL);
}

TEST_CASE("a step that comes late still gives its whole time") {
  StopLadder ladder;
  ladder.begin(stop_steps(SIGTERM, Milliseconds(100), Milliseconds(50)), at(0));
  REQUIRE(ladder.take_due(at(70)));
  CHECK(ladder.due() == at(170));
}

TEST_CASE("a new ladder replaces the running one") {
  StopLadder ladder;
  ladder.begin(stop_steps(SIGTERM, Milliseconds(100), Milliseconds(50)), at(0));
  REQUIRE(ladder.take_due(at(0)));
  ladder.begin(kill_steps(Milliseconds(50)), at(10));
  CHECK(ladder.take_due(at(10))->signal == SIGKILL);
  CHECK(ladder.exhausted(at(60)));
}

TEST_CASE("an extension lengthens a step and never shortens it") {
  StopLadder ladder;
  ladder.begin(stop_steps(SIGTERM, Milliseconds(100), Milliseconds(50)), at(0));
  REQUIRE(ladder.take_due(at(0)));
  ladder.extend(Milliseconds(20), at(10));
  CHECK(ladder.due() == at(100));
  ladder.extend(Milliseconds(20), at(95));
  CHECK(ladder.due() == at(115));
}

TEST_CASE("leftovers may end by themselves first") {
  StopLadder ladder;
  ladder.begin(leftover_steps(Milliseconds(10), Milliseconds(20), Milliseconds(30)), at(0));
  CHECK(ladder.take_due(at(0))->signal == 0);
  CHECK_FALSE(ladder.take_due(at(9)));
  CHECK(ladder.take_due(at(10))->signal == SIGTERM);
  CHECK(ladder.take_due(at(30))->signal == SIGKILL);
  CHECK(ladder.exhausted(at(60)));
}

}  // namespace muster
