// SPDX-License-Identifier: Apache-2.0
// Nodes that come, go and come back while the job runs.
#include <doctest/doctest.h>

#include "rendezvous/coordinator_fixture.h"

namespace muster {

using namespace std::chrono_literals;
using Phase = Coordinator::Phase;
using Lost = Coordinator::Lost;

namespace {

// An elastic job of h, b and c, all running.
struct Elastic : Round {
  Elastic(int min, int max) : Round(min, max) {
    settings.last_call = 30s;
    for (const char* id : {"h", "b", "c"})
      join(id);
    if (max > 3) pass(30s);
  }
  void lose_and_settle(const std::string& id) {
    now += 1min;
    lose(id);
    for (const char* other : {"h", "b", "c"}) {
      if (other != id) settle_stopped(other);
    }
  }
};

}  // namespace

TEST_CASE("a spare takes the place of a lost node at once") {
  Round round(2, 2);
  for (const char* id : {"h", "b", "s"})
    round.join(id);
  round.lose("b");
  round.settle_stopped("h");
  CHECK(round.ids<action::Assign>() == "hs");
  CHECK(round.assignment_of("s").node == 1);
  CHECK(round.said() == "");
}

TEST_CASE("with fixed nodes the rest waits for a replacement until the join time is over") {
  Elastic round(3, 3);
  round.lose_and_settle("b");
  CHECK(round.coordinator().phase() == Phase::kForming);
  CHECK(round.said() == "waiting for a replacement of node-b, the workers are stopped\n");
  REQUIRE(round.recorded<event::NodesAwaited>().size() == 1);
  CHECK(round.recorded<event::NodesAwaited>()[0].text ==
        "2 of 3 nodes: have node-h (2), node-c (2); waiting for 1 more, 10:00 left");
  round.pass(10min);
  CHECK(round.end_of("c").exit_code == 1);
  CHECK(round.end_of("c").why ==
        "no replacement of node-b came within 10:00: have node-h (2), node-c (2); 1 is missing");
}

TEST_CASE("with MIN left the rest goes on after the last call, closed up") {
  Elastic round(2, 3);
  round.lose_and_settle("b");
  CHECK(round.contains(round.said(), "waiting for a replacement of node-b"));
  REQUIRE(round.recorded<event::NodesAwaited>().size() == 1);
  CHECK(round.recorded<event::NodesAwaited>()[0].text ==
        "2 of 2:3 nodes: have node-h (2), node-c (2); starting in 30 s unless 1 more joins");
  round.pass(30s);
  CHECK(round.ids<action::Assign>() == "hc");
  CHECK(round.assignment_of("c").node == 1);
  CHECK(round.assignment_of("c").first_rank == 2);
  CHECK(round.assignment_of("c").world_size == 4);
}

TEST_CASE("a replacement that comes in the last call starts at once, in the vacated place") {
  Elastic round(2, 3);
  round.lose_and_settle("b");
  round.pass(5s);
  round.join("d");
  CHECK(round.ids<action::Assign>() == "hdc");
}

TEST_CASE("as many as there were are enough, though there may be more") {
  Elastic round(2, 5);
  round.lose_and_settle("b");
  round.join("d");
  CHECK(round.ids<action::Assign>() == "hdc");
}

TEST_CASE("after a failure with the same nodes there is no last call") {
  Round round(2, 4, 1);
  round.join("h");
  round.join("b");
  round.pass(30s);
  round.fail("b", 2);
  round.settle_failed("b", 2);
  round.settle_stopped("h");
  CHECK(round.ids<action::Assign>() == "hb");
}

TEST_CASE("a joiner makes a running job grow at once") {
  Elastic round(2, 4);
  round.join("d");
  CHECK_FALSE(round.all<action::Welcome>().at(0).spare);
  CHECK(round.ids<action::Stop>() == "hbc");
  CHECK(round.all<action::Stop>()[0].order.reason == StopReason::kMembership);
  CHECK(round.all<action::Stop>()[0].order.why == "node-d joined");
  for (const char* id : {"h", "b", "c"})
    round.settle_stopped(id);
  CHECK_FALSE(round.all<action::Tell>().at(0).verdict->root);
  CHECK(round.all<action::Tell>().at(0).verdict->restarts);
  CHECK(round.ids<action::Assign>() == "hbcd");
  CHECK(round.assignment_of("d").restart_count == 0);
}

TEST_CASE("a job grows at most as often as it is told to") {
  Round round(1, 4);
  round.settings.grow_every = 60s;
  round.settings.last_call = 0ms;
  round.join("h");
  round.pass(20s);
  round.join("b");
  CHECK(round.all<action::Stop>().empty());
  CHECK(round.coordinator().wake_at() == round.now + 40s);
  round.pass(39s);
  round.join("c");
  CHECK(round.all<action::Stop>().empty());
  round.pass(1s);
  CHECK(round.ids<action::Stop>() == "h");
  round.settle_stopped("h");
  CHECK(round.ids<action::Assign>() == "hbc");
  // A long time after the last start there is nothing to wait for.
  round.pass(61s);
  round.join("d");
  CHECK(round.ids<action::Stop>() == "hbc");
}

TEST_CASE("a job that is about to end does not grow") {
  Elastic round(2, 4);
  round.complete("b");
  round.join("d");
  CHECK(round.all<action::Welcome>().at(0).spare);
  CHECK(round.all<action::Stop>().empty());
  round.pass(1h);
  CHECK(round.all<action::Stop>().empty());
  CHECK_FALSE(round.coordinator().wake_at());
  round.complete("h");
  round.complete("c");
  CHECK(round.ids<action::End>() == "hbcd");
}

TEST_CASE("whoever joins while the workers stop is taken along") {
  Elastic round(2, 5);
  round.fail("b", 2);
  round.join("d");
  CHECK(round.all<action::Stop>().empty());
  round.settings.terms.max_restarts = 0;
  round.lose("c");
  round.settle_stopped("h");
  round.settle_stopped("b");
  CHECK(round.ids<action::Assign>() == "hbd");
}

TEST_CASE("an agent on a new connection whose attempt still runs goes on") {
  Elastic round(3, 3);
  round.join_with_workers("b", 0);
  REQUIRE(round.all<action::Welcome>().size() == 1);
  CHECK(round.all<action::Welcome>()[0].resumed);
  CHECK(round.last.size() == 1);
  CHECK(round.coordinator().phase() == Phase::kRunning);
}

TEST_CASE("an agent on a new connection hears again what it may have missed") {
  Elastic round(3, 3);
  SUBCASE("the order to stop") {
    round.fail("c", 4);
    round.join_with_workers("b", 0);
    CHECK(round.all<action::Welcome>().at(0).resumed);
    CHECK(round.ids<action::Stop>() == "b");
    CHECK(round.all<action::Stop>()[0].order.why == "rank 4 on node-c failed");
    round.settle_stopped("b");
    round.join_with_workers("b", 0);
    CHECK(round.all<action::Welcome>().at(0).resumed);
    CHECK_MESSAGE(round.last.size() == 1, "it has settled");
  }
  SUBCASE("the verdict and the end") {
    round.settle_failed("b", 2, 5);
    round.settle_stopped("h");
    round.settle_stopped("c");
    REQUIRE(round.ids<action::End>() == "hbc");
    round.join_with_workers("b", 0);
    CHECK(round.all<action::Welcome>().at(0).resumed);
    CHECK(round.ids<action::Tell>() == "b");
    CHECK(round.end_of("b").exit_code == 5);
  }
  SUBCASE("the verdict while nodes are awaited") {
    round.lose("c");
    round.settle_stopped("h");
    round.settle_stopped("b");
    round.join_with_workers("b", 0);
    CHECK(round.all<action::Welcome>().at(0).resumed);
    CHECK(round.ids<action::Tell>() == "b");
    round.join("d");
    CHECK(round.ids<action::Assign>() == "hbd");
  }
}

TEST_CASE("an agent that never got its part has lost it") {
  Elastic round(3, 3);
  round.join("b");  // the same id, without workers
  CHECK(round.recorded<event::NodeLost>().size() == 1);
  CHECK_MESSAGE(round.all<action::Drop>().empty(), "its new connection is to stay");
  CHECK(round.ids<action::Stop>() == "hc");
  CHECK_FALSE(round.all<action::Welcome>().at(0).resumed);
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK(round.ids<action::Assign>() == "hbc");
  CHECK(round.assignment_of("b").node == 1);
}

TEST_CASE("a node that was given up is not assigned before its old workers are gone") {
  Elastic round(3, 3);
  round.lose("b", Lost::kSilent);
  round.join_with_workers("b", 0);
  CHECK_FALSE(round.all<action::Welcome>().at(0).resumed);
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK(round.ids<action::Tell>() == "hc");
  CHECK(round.all<action::Assign>().empty());
  round.pass(10s);
  CHECK(round.contains(round.recorded<event::NodesAwaited>().at(0).text,
                       "1 node still ends its old workers"));
  NodeOutcome outcome;
  outcome.attempt = 0;
  round.settle("b", outcome);
  CHECK(round.ids<action::Tell>() == "b");
  CHECK(round.ids<action::Assign>() == "hbc");
  CHECK_MESSAGE(round.assignment_of("b").node == 1, "its place was still free");
}

TEST_CASE("no attempt begins while a node that is here still ends its old workers") {
  Round round(1, 2);
  for (const char* id : {"h", "b", "s"})
    round.join(id);
  round.lose("b", Lost::kSilent);
  round.join_with_workers("b", 0);
  round.now += 1s;
  round.settle_stopped("h");
  CHECK(round.all<action::Assign>().empty());
  CHECK(round.contains(round.recorded<event::NodesAwaited>().at(0).text,
                       "2 of 1:2 nodes: have node-h (2), node-s (2); 1 node still ends its old "
                       "workers; starting when they have ended"));
  CHECK_MESSAGE(round.coordinator().wake_at() > round.now, "only the countdown is due");
  round.pass(1min);
  CHECK(round.all<action::Assign>().empty());
  SUBCASE("they end") {
    NodeOutcome outcome;
    outcome.attempt = 0;
    round.settle("b", outcome);
    CHECK_MESSAGE(round.ids<action::Assign>() == "hb", "it kept its place");
  }
  SUBCASE("the node is lost again") {
    round.lose("b");
    CHECK(round.ids<action::Assign>() == "hs");
  }
}

TEST_CASE("a place is gone when another has taken it") {
  Round round(2, 2);
  for (const char* id : {"h", "b", "s"})
    round.join(id);
  round.lose("b");
  round.settle_stopped("h");
  REQUIRE(round.ids<action::Assign>() == "hs");
  round.join_with_workers("b", 0);
  CHECK(round.all<action::Welcome>().at(0).spare);
  CHECK_FALSE(round.all<action::Welcome>().at(0).resumed);
  CHECK(round.coordinator().phase() == Phase::kRunning);
}

TEST_CASE("a returning node that cannot end its old workers is sent home alone") {
  Elastic round(3, 3);
  round.lose("b", Lost::kSilent);
  round.join_with_workers("b", 0);
  NodeOutcome outcome;
  outcome.attempt = 0;
  outcome.left_running = true;
  round.settle("b", outcome);
  CHECK(round.ids<action::End>() == "b");
  CHECK(round.end_of("b").outcome == Outcome::kFailed);
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK(round.coordinator().phase() == Phase::kForming);
}

TEST_CASE("a node with old workers is told the end only when they are gone") {
  Round round(2, 2);
  round.join("h");
  round.join_with_workers("b", 4);
  round.signal("h", 15);
  CHECK(round.ids<action::End>() == "h");
  CHECK(round.ids<action::Stop>() == "b");
  CHECK(round.all<action::Stop>()[0].order.attempt == 4);
  round.goodbye("h");
  CHECK(round.all<action::Closed>().empty());
  NodeOutcome outcome;
  outcome.attempt = 4;
  round.settle("b", outcome);
  CHECK(round.end_of("b").exit_code == 143);
  round.goodbye("b");
  CHECK(round.all<action::Closed>().size() == 1);
}

TEST_CASE("a member that was cut off while the job ended is still told how") {
  Elastic round(2, 3);
  round.complete("h");
  round.complete("b");
  round.lose("b");
  round.complete("c");
  REQUIRE(round.coordinator().phase() == Phase::kEnding);
  round.join_with_workers("b", 0);
  CHECK(round.ids<action::Welcome>() == "b");
  CHECK(round.all<action::End>().empty());
  NodeOutcome outcome;
  outcome.attempt = 0;
  round.settle("b", outcome);
  CHECK(round.end_of("b").exit_code == 0);
}

TEST_CASE("a coordinator elected later goes on counting where the last one was") {
  Round round(2, 2, 3);
  NodeFacts facts = round.facts("h");
  facts.last_attempt = 4;
  facts.last_restart_count = 2;
  round.join(facts);
  facts = round.facts("b");
  facts.last_attempt = 6;
  facts.last_restart_count = 1;
  facts.attempt = 6;
  round.join(facts);
  NodeOutcome outcome;
  outcome.attempt = 6;
  round.settle("b", outcome);
  CHECK(round.assignment_of("h").attempt == 7);
  CHECK(round.assignment_of("h").restart_count == 2);
  round.settle_failed("b", 2);
  round.settle_stopped("h");
  CHECK(round.assignment_of("h").restart_count == 3);
  round.settle_failed("b", 2);
  round.settle_stopped("h");
  CHECK_MESSAGE(round.ids<action::End>() == "hb", "the budget is used up");
}

TEST_CASE("the master's address and port stay the same from attempt to attempt") {
  Round round(2, 2, 1);
  round.settings.endpoint_host = "";
  for (const char* id : {"h", "b"})
    round.join(id);
  CHECK(round.assignment_of("b").master_addr == "10.0.0.1");
  round.lose("b");
  round.settle_stopped("h");
  NodeFacts facts = round.facts("c");
  round.coordinator().join(facts, "10.1.0.9", "10.1.0.1", round.now);
  round.last = round.coordinator().take_actions();
  CHECK(round.assignment_of("c").master_addr == "10.0.0.1");
  CHECK(round.assignment_of("h").master_addr == "10.0.0.1");
  CHECK(round.assignment_of("c").master_port == 29500);
}

}  // namespace muster
