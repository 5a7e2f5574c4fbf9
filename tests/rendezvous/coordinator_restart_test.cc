// SPDX-License-Identifier: Apache-2.0
// Restarts that somebody asks for.
#include <doctest/doctest.h>

#include "rendezvous/coordinator_fixture.h"

namespace muster {

using Phase = Coordinator::Phase;

namespace {

struct Two : Round {
  explicit Two(int max_restarts = 0) : Round(2, 2, max_restarts) {
    join("h");
    join("b");
  }
};

}  // namespace

TEST_CASE("a restart that is asked for stops all nodes, begins again and costs nothing") {
  Two round;
  CHECK(round.restart("b") == "");
  const auto stops = round.all<action::Stop>();
  REQUIRE(stops.size() == 2);
  CHECK(stops[0].order.reason == StopReason::kRestart);
  CHECK(stops[0].order.signal == 15);
  CHECK(stops[0].order.why == "restarting: asked for by alice on node-b");
  const auto recorded = round.recorded<event::RestartRequested>();
  REQUIRE(recorded.size() == 1);
  CHECK(recorded[0].attempt == 0);
  CHECK(recorded[0].who == "alice");
  CHECK(recorded[0].host == "node-b");
  round.settle_stopped("h");
  round.settle_stopped("b");
  REQUIRE(round.all<action::Tell>().size() == 2);
  CHECK(round.all<action::Tell>()[0].verdict->restarts);
  CHECK_FALSE(round.all<action::Tell>()[0].verdict->root);
  CHECK(round.assignment_of("b").attempt == 1);
  CHECK(round.assignment_of("b").restart_count == 0);
}

TEST_CASE("one node alone restarts as often as it is asked to") {
  Round round(1, 1);
  round.join("h");
  for (int attempt = 1; attempt < 4; ++attempt) {
    CHECK(round.restart("h") == "");
    CHECK(round.recorded<event::RestartRequested>().at(0).host == "");
    CHECK(round.all<action::Stop>().at(0).order.why == "restarting: asked for by alice");
    round.settle_stopped("h");
    CHECK(round.assignment_of("h").attempt == attempt);
  }
}

TEST_CASE("workers that fail while they are stopped for a restart are no culprits") {
  Two round;
  round.restart("h");
  round.fail("b", 2);
  round.settle_failed("b", 2);
  round.settle_stopped("h");
  CHECK_FALSE(round.all<action::Tell>().at(0).verdict->root);
  CHECK(round.assignment_of("h").attempt == 1);
}

TEST_CASE("a signal that comes while it restarts ends the job") {
  Two round;
  round.restart("h");
  round.signal("b");
  round.settle_stopped("h");
  round.settle_stopped("b");
  CHECK(round.end_of("h").outcome == Outcome::kStopped);
}

TEST_CASE("work that was done before anybody could stop it is not done again") {
  Two round;
  round.restart("h");
  round.complete("h");
  round.complete("b");
  CHECK(round.end_of("h").outcome == Outcome::kSucceeded);
}

TEST_CASE("a restart is refused, with the reason, when nothing runs") {
  Round forming(2, 2);
  forming.join("h");
  CHECK(forming.restart("h") == "no worker is running: the job waits for its nodes");
  CHECK(forming.restart("nobody") == "this node has no part in the job");
  Two round;
  round.fail("b", 2);
  CHECK(round.restart("h") == "the workers are being stopped already");
  CHECK(round.recorded<event::RestartRequested>().empty());
  round.settle_failed("b", 2);
  round.settle_stopped("h");
  CHECK(round.restart("h") == "the job is ending");
}

TEST_CASE("what has gone home cannot be restarted") {
  Round round(2, 2);
  round.settings.exit_barrier = std::chrono::milliseconds(1'000);
  round.join("h");
  round.join("b");
  round.complete("b");
  round.pass(std::chrono::milliseconds(1'000));
  REQUIRE(round.ids<action::End>() == "b");
  CHECK(round.restart("h") == "nodes that had finished have gone home");
}

}  // namespace muster
