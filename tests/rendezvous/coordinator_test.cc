// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/coordinator.h"

#include <doctest/doctest.h>
#include <signal.h>

#include "rendezvous/coordinator_fixture.h"

namespace muster {

namespace {

using namespace std::chrono_literals;
using Phase = Coordinator::Phase;
using Lost = Coordinator::Lost;

}  // namespace

TEST_CASE("one node alone starts at once, without a word about nodes") {
  Round round(1, 1);
  round.join("h", 4);
  CHECK(round.ids<action::Welcome>() == "h");
  CHECK(round.ids<action::Assign>() == "h");
  CHECK(round.all<action::ResetStore>().size() == 1);
  CHECK(round.all<action::Record>().empty());
  CHECK(round.all<action::Say>().empty());
  Assignment assignment = round.assignment_of("h");
  CHECK(assignment.attempt == 0);
  CHECK(assignment.node_count == 1);
  CHECK(assignment.world_size == 4);
  CHECK(assignment.nodes.size() == 1);
  CHECK(assignment.master_port == 29500);
  CHECK_FALSE(round.coordinator().wake_at());
}

TEST_CASE("one node that succeeds ends with 0 and closes after its goodbye") {
  Round round(1, 1);
  round.join("h");
  round.complete("h");
  CHECK(round.end_of("h").exit_code == 0);
  CHECK(round.all<action::Tell>().empty());
  round.goodbye("h");
  CHECK(round.all<action::Closed>().size() == 1);
  CHECK(round.coordinator().phase() == Phase::kClosed);
}

TEST_CASE("one node that fails restarts within its budget and then ends with the exit code") {
  Round round(1, 1, 1);
  round.join("h");
  round.fail("h", 1);
  CHECK(round.all<action::Stop>().empty());
  round.settle_failed("h", 1);
  REQUIRE(round.all<action::Tell>().size() == 1);
  CHECK(round.all<action::Tell>()[0].verdict.restarts);
  CHECK(round.assignment_of("h").attempt == 1);
  CHECK(round.assignment_of("h").restart_count == 1);
  round.settle_failed("h", 0, 7);
  REQUIRE(round.all<action::Tell>().size() == 1);
  CHECK_FALSE(round.all<action::Tell>()[0].verdict.restarts);
  CHECK(round.end_of("h").outcome == Outcome::kFailed);
  CHECK(round.end_of("h").exit_code == 7);
}

}  // namespace muster
