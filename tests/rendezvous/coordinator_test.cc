// SPDX-License-Identifier: Apache-2.0
// Coming together, starting, stopping by signal and ending. Failures and changes of membership have
// files of their own.
#include "supervisor/rendezvous/coordinator.h"

#include <doctest/doctest.h>
#include <signal.h>

#include "rendezvous/coordinator_fixture.h"
#include "supervisor/rendezvous/admission.h"

namespace muster {

using namespace std::chrono_literals;
using Phase = Coordinator::Phase;
using Lost = Coordinator::Lost;

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

TEST_CASE("one node that has not joined yet keeps nobody busy") {
  Round round(1, 1);
  CHECK(round.coordinator().wake_at() == round.now + 10min);
}

TEST_CASE("one node that succeeds ends with 0 and closes after its goodbye") {
  Round round(1, 1);
  round.join("h");
  round.complete("h");
  CHECK(round.end_of("h").exit_code == 0);
  CHECK(round.end_of("h").outcome == Outcome::kSucceeded);
  CHECK(round.all<action::Tell>().empty());
  CHECK(round.all<action::Closed>().empty());
  round.goodbye("h");
  CHECK(round.all<action::Closed>().size() == 1);
  CHECK(round.coordinator().phase() == Phase::kClosed);
  CHECK_FALSE(round.coordinator().wake_at());
}

TEST_CASE("a fixed number of nodes starts when the last has come, host first") {
  Round round(2, 2);
  round.join("b", 4);
  CHECK(round.all<action::Assign>().empty());
  round.join("h", 2);
  CHECK(round.ids<action::Assign>() == "hb");
  CHECK(round.assignment_of("h").first_rank == 0);
  CHECK(round.assignment_of("b").first_rank == 2);
  CHECK(round.assignment_of("b").world_size == 6);
  CHECK(round.assignment_of("b").node == 1);
  // O(nodes) in all: only the host is told of every node.
  CHECK(round.assignment_of("h").nodes.size() == 2);
  CHECK(round.assignment_of("b").nodes.empty());
}

TEST_CASE("the store is emptied before anybody is assigned") {
  Round round(2, 2, 1);
  round.join("h");
  round.join("b");
  auto reset_first = [&] {
    bool reset = false;
    for (const Action& action : round.last) {
      if (std::holds_alternative<action::ResetStore>(action)) reset = true;
      if (std::holds_alternative<action::Assign>(action) && !reset) return false;
    }
    return reset;
  };
  CHECK(reset_first());
  round.fail("b", 2);
  round.settle_stopped("h");
  round.settle_failed("b", 2);
  CHECK(round.assignment_of("h").attempt == 1);
  CHECK(reset_first());
}

TEST_CASE("with MIN nodes here the last call runs, and the hint how to shorten it comes once") {
  Round round(2, 4);
  round.join("h");
  round.join("b");
  CHECK(round.all<action::Assign>().empty());
  CHECK(round.recorded<event::NodesAwaited>().empty());  // the first was just now
  CHECK(round.contains(round.said(), "--rdzv-conf last_call_timeout"));
  round.pass(10s);
  round.join("c");
  CHECK(round.said() == "");
  round.pass(19'999ms);
  CHECK(round.all<action::Assign>().empty());
  CHECK(round.coordinator().wake_at() == round.now + 1ms);
  round.pass(1ms);
  CHECK(round.ids<action::Assign>() == "hbc");
}

TEST_CASE("MAX nodes end the last call") {
  Round round(1, 2);
  round.join("h");
  CHECK(round.all<action::Assign>().empty());
  round.join("b");
  CHECK(round.ids<action::Assign>() == "hb");
}

TEST_CASE("a last call of zero is none") {
  Round round(1, 4);
  round.settings.last_call = 0ms;
  round.join("h");
  CHECK(round.ids<action::Assign>() == "h");
  CHECK(round.said() == "");
}

TEST_CASE("a node lost in the last call cancels it and gives the rest the whole join time") {
  Round round(2, 3);
  round.join("h");
  round.pass(9min);
  round.join("b");
  round.pass(20s);
  round.lose("b");
  CHECK(round.all<action::Drop>().size() == 1);
  round.pass(9min + 59s);
  CHECK(round.coordinator().phase() == Phase::kForming);
  round.pass(1s);
  CHECK(round.coordinator().phase() == Phase::kEnding);
}

TEST_CASE("when the join time is over everybody is told who was here and how many are missing") {
  Round round(4, 4);
  round.join("h", 8);
  round.join("b", 4);
  round.pass(10min - 1ms);
  CHECK(round.all<action::End>().empty());
  round.pass(1ms);
  CHECK(round.ids<action::End>() == "hb");
  CHECK(round.end_of("b").outcome == Outcome::kFailed);
  CHECK(round.end_of("b").exit_code == 1);
  CHECK(round.end_of("b").kind == "rendezvous_timeout");
  CHECK(round.end_of("b").why ==
        "not enough nodes came within 10:00: have node-h (8), node-b (4); 2 are missing");
  CHECK(round.all<action::Closed>().empty());
  round.lose("b");
  round.goodbye("h");
  CHECK(round.all<action::Closed>().size() == 1);
}

TEST_CASE("if nobody is here when the join time is over it closes at once") {
  Round round(2, 2);
  round.pass(10min);
  CHECK(round.all<action::Closed>().size() == 1);
}

TEST_CASE("a late joiner of an ending job is sent away, though not for good") {
  Round round(1, 2);
  round.settings.last_call = 0ms;
  round.join("h");
  round.complete("h");
  round.join("b");
  REQUIRE(round.all<action::Refuse>().size() == 1);
  CHECK(round.all<action::Refuse>()[0].reason == "this job is ending");
  CHECK_FALSE(round.all<action::Refuse>()[0].final);
  round.goodbye("h");
  round.join("b");
  CHECK(round.all<action::Refuse>().size() == 1);
}

TEST_CASE("options that differ are refused for good, with both values") {
  Round round(2, 2);
  round.join("h");
  NodeFacts facts = round.facts("b");
  facts.terms.max_restarts = 3;
  facts.terms.max_nodes = 4;
  round.join(facts);
  REQUIRE(round.all<action::Refuse>().size() == 1);
  CHECK(round.all<action::Refuse>()[0].final);
  CHECK(round.all<action::Refuse>()[0].reason ==
        "it must be started with the same options on every node: --nnodes is 2:4 here and 2 at "
        "node-h (the host); --max-restarts is 3 here and 0 at node-h (the host)");
  CHECK(round.recorded<event::NodeJoined>().empty());
  // It is unknown: nothing that it says has any effect.
  round.lose("b");
  round.fail("b", 0);
  round.signal("b");
  round.goodbye("b");
  CHECK(round.last.empty());
}

TEST_CASE("a node rank that is taken or out of range is refused for good") {
  Round round(2, 2);
  round.join_with_rank("h", 0);
  round.join_with_rank("b", 0);
  REQUIRE(round.all<action::Refuse>().size() == 1);
  CHECK(round.all<action::Refuse>()[0].final);
  CHECK(round.all<action::Refuse>()[0].reason == "--node-rank 0 is taken by node-h (pid 100)");
  round.join_with_rank("b", 2);
  REQUIRE(round.all<action::Refuse>().size() == 1);
  CHECK(round.all<action::Refuse>()[0].reason ==
        "--node-rank 2 is out of range: --nnodes 2 has the ranks 0 to 1");
  round.join_with_rank("b", 1);
  CHECK(round.ids<action::Assign>() == "hb");
}

TEST_CASE("a node rank is free again when its holder is gone") {
  Round round(3, 3);
  round.join_with_rank("h", 0);
  round.join_with_rank("b", 1);
  round.lose("b");
  round.join_with_rank("c", 1);
  CHECK(round.all<action::Refuse>().empty());
}

TEST_CASE("nodes beyond the most are spares and go home with the job's outcome") {
  Round round(2, 2);
  round.join("h");
  round.join("b");
  round.join("c");
  REQUIRE(round.all<action::Welcome>().size() == 1);
  CHECK(round.all<action::Welcome>()[0].spare);
  CHECK(round.recorded<event::NodeJoined>().at(0).spare);
  round.complete("h");
  round.complete("b");
  CHECK(round.ids<action::End>() == "hbc");
  CHECK(round.end_of("c").exit_code == 0);
}

TEST_CASE("spares without end are refused") {
  Round round(1, 1);
  round.join("h");
  for (size_t i = 0; i < kMaxSpares; ++i) {
    round.join("spare" + std::to_string(i));
    REQUIRE(round.all<action::Refuse>().empty());
  }
  round.join("one more");
  CHECK(round.all<action::Refuse>().size() == 1);
}

TEST_CASE("what waits is recorded at once, once a second at most, and every ten seconds") {
  Round round(9, 9);
  round.join("h");
  CHECK(round.recorded<event::NodesAwaited>().size() == 1);
  round.join("b");
  round.join("c");
  CHECK(round.recorded<event::NodesAwaited>().empty());
  CHECK(round.coordinator().wake_at() == round.now + 1s);
  round.pass(1s);
  REQUIRE(round.recorded<event::NodesAwaited>().size() == 1);
  CHECK(round.recorded<event::NodesAwaited>()[0].have == 3);
  round.pass(9'999ms);
  CHECK(round.recorded<event::NodesAwaited>().empty());
  round.pass(1ms);
  CHECK(round.recorded<event::NodesAwaited>().size() == 1);
}

TEST_CASE("those who wait are told only if it lasts, and every five seconds at most") {
  Round round(3, 3);
  round.join("h");
  round.pass(2s);
  CHECK_MESSAGE(round.all<action::Broadcast>().empty(), "there is nobody but the host");
  round.pass(1s);
  round.join("b");
  CHECK(round.all<action::Broadcast>().empty());
  round.pass(4s);
  REQUIRE(round.all<action::Broadcast>().size() == 1);
  CHECK(round.all<action::Broadcast>()[0].awaited.text ==
        "2 of 3 nodes: have node-h (2), node-b (2); waiting for 1 more, 09:53 left");
  round.pass(4'999ms);
  CHECK(round.all<action::Broadcast>().empty());
  round.pass(1ms);
  CHECK(round.all<action::Broadcast>().size() == 1);
}

TEST_CASE("ten thousand joiners cost a few actions each") {
  Round round(10'000, 10'000);
  size_t broadcasts = 0, records = 0;
  round.join("h", 8);
  for (int i = 1; i < 10'000; ++i) {
    round.now += 400us;
    round.join("n" + std::to_string(i), 8);
    broadcasts += round.all<action::Broadcast>().size();
    records += round.recorded<event::NodesAwaited>().size();
    if (i < 9'999) REQUIRE(round.last.size() <= 4);
  }
  CHECK(round.all<action::Assign>().size() == 10'000);
  CHECK(round.all<action::Assign>().back().assignment.world_size == 80'000);
  CHECK(broadcasts <= 1);
  CHECK(records <= 17);
}

TEST_CASE("a node from elsewhere at a loopback endpoint draws one warning") {
  Round round(3, 3);
  round.settings.endpoint_host = "localhost";
  round.join("h");
  CHECK(round.said() == "");
  round.join("b");
  CHECK(round.contains(round.said(), "node-b came from 10.0.0.9"));
  round.join("c");
  CHECK(round.said() == "");
}

TEST_CASE("uneven worker counts draw a warning, once until they change") {
  Round round(2, 2, 3);
  round.join("h", 4);
  round.join("b", 2);
  CHECK(round.contains(round.said(), "2 on node-b, 4 on node-h"));
  round.settle_failed("h", 0);
  round.settle_stopped("b");
  CHECK(round.assignment_of("h").attempt == 1);
  CHECK(round.said() == "");
}

TEST_CASE("a stop signal anywhere stops every node, sets the key once and ends with 128 + n") {
  Round round(2, 2, 5);
  round.join("h");
  round.join("b");
  round.join("spare");
  round.signal("spare", SIGUSR2);
  REQUIRE(round.all<action::SetStopKey>().size() == 1);
  CHECK(round.all<action::SetStopKey>()[0].signal == "SIGUSR2");
  CHECK(round.ids<action::Stop>() == "hb");
  CHECK(round.all<action::Stop>()[0].order.signal == SIGUSR2);
  CHECK(round.all<action::Stop>()[0].order.reason == StopReason::kSignal);
  CHECK(round.all<action::Stop>()[0].order.why == "SIGUSR2 on node-spare from the kernel");
  CHECK(std::holds_alternative<action::SetStopKey>(round.last.front()));
  round.settle_stopped("h");
  round.signal("h", SIGINT, true);
  CHECK(round.all<action::SetStopKey>().empty());
  CHECK(round.ids<action::Stop>() == "b");
  CHECK(round.all<action::Stop>()[0].order.kill);
  round.settle_stopped("b");
  CHECK(round.all<action::Tell>().empty());
  CHECK(round.ids<action::End>() == "hbspare");
  CHECK(round.end_of("b").outcome == Outcome::kStopped);
  CHECK(round.end_of("b").exit_code == 128 + SIGUSR2);
  CHECK(round.end_of("b").kind == "stopped_by_user");
}

TEST_CASE("a signal that is only passed on stops nothing") {
  Round round(1, 1);
  round.join("h");
  event::SignalReceived signal;
  signal.signal = SIGUSR1;
  signal.forwarded = true;
  round.coordinator().stop_requested("h", signal, false, round.now);
  CHECK(round.coordinator().take_actions().empty());
}

TEST_CASE("a signal that comes when all had ended with 0 is too late") {
  Round round(2, 2);
  round.join("h");
  round.join("b");
  round.complete("h");
  round.signal("h");
  CHECK(round.ids<action::Stop>() == "b");
  round.complete("b");
  CHECK(round.end_of("h").outcome == Outcome::kSucceeded);
}

TEST_CASE("a failure before the signal counts only where no restart was left") {
  for (int budget : {0, 1}) {
    CAPTURE(budget);
    Round round(1, 1, budget);
    round.join("h");
    round.fail("h", 0);
    round.signal("h");
    CHECK(round.ids<action::Stop>() == "h");
    round.settle_failed("h", 0, 9);
    REQUIRE(round.all<action::Tell>().size() == 1);
    CHECK_FALSE(round.all<action::Tell>()[0].verdict->restarts);
    CHECK(round.end_of("h").exit_code == (budget == 0 ? 9 : 143));
    CHECK(round.end_of("h").outcome == (budget == 0 ? Outcome::kFailed : Outcome::kStopped));
  }
}

TEST_CASE("a signal while nodes are awaited ends the job at once") {
  Round round(2, 2);
  round.join("h");
  round.signal("h", SIGINT);
  CHECK(round.end_of("h").exit_code == 130);
  CHECK(round.all<action::SetStopKey>().empty());
}

TEST_CASE("a signal while the job ends changes nothing") {
  Round round(1, 1);
  round.join("h");
  round.complete("h");
  round.signal("h");
  CHECK(round.last.empty());
}

TEST_CASE("an attempt that cannot begin ends the job with the exit code of the one before") {
  Round round(2, 2, 3);
  round.join("h");
  round.join("b");
  NodeOutcome trouble;
  trouble.trouble = "cannot create the folder";
  SUBCASE("1 if there was none") {
    round.settle("b", trouble);
    CHECK(round.ids<action::Stop>() == "h");
    CHECK(round.all<action::Stop>()[0].order.why == "node-b: cannot create the folder");
    round.settle_stopped("h");
    CHECK(round.end_of("h").exit_code == 1);
    CHECK(round.end_of("h").why == "node-b: cannot create the folder");
  }
  SUBCASE("that of the failed one") {
    round.settle_failed("b", 2, 42);
    round.settle_stopped("h");
    trouble.attempt = 1;
    round.settle("b", trouble);
    round.settle_stopped("h");
    CHECK(round.end_of("h").exit_code == 42);
  }
  CHECK(round.end_of("h").outcome == Outcome::kFailed);
}

TEST_CASE("nothing follows an attempt of which something is left") {
  Round round(1, 1, 3);
  round.join("h");
  NodeOutcome outcome;
  outcome.left_running = true;
  SUBCASE("though all workers ended with 0") {
    outcome.complete = true;
    round.settle("h", outcome);
    CHECK(round.end_of("h").exit_code == 1);
  }
  SUBCASE("after a failure") {
    outcome.root = Round::failure(0, 5);
    round.settle("h", outcome);
    CHECK(round.end_of("h").exit_code == 5);
  }
  CHECK(round.end_of("h").outcome == Outcome::kFailed);
  CHECK(round.all<action::Assign>().empty());
}

TEST_CASE("all wait for all, however long the last one takes") {
  Round round(2, 2);
  round.join("h");
  round.join("b");
  round.complete("b");
  round.pass(24h);
  CHECK(round.all<action::End>().empty());
  round.complete("h");
  CHECK(round.ids<action::End>() == "hb");
}

TEST_CASE("nodes that wait for others at the end are told which, once") {
  Round round(3, 3);
  for (const char* id : {"h", "b", "c"})
    round.join(id);
  round.complete("b");
  CHECK(round.coordinator().wake_at() == round.now + 5s);
  round.pass(5s);
  CHECK(round.said() == "finished: node-b; still running after 5.0 s: node-h, node-c\n");
  CHECK_FALSE(round.coordinator().wake_at());
  round.pass(5s);
  CHECK(round.said() == "");
}

TEST_CASE("with an exit barrier the finished go home after it, the host never") {
  Round round(4, 4, 2);
  round.settings.exit_barrier = 60s;
  for (const char* id : {"h", "b", "c", "d"})
    round.join(id);
  round.complete("h");
  CHECK_FALSE(round.coordinator().wake_at());
  round.pass(10s);
  round.complete("b");
  CHECK(round.coordinator().wake_at() == round.now + 50s);
  round.pass(50s);
  CHECK(round.ids<action::End>() == "b");
  CHECK(round.end_of("b").exit_code == 0);
  round.goodbye("b");
  CHECK(round.recorded<event::NodeLost>().empty());
  round.complete("c");
  CHECK(round.ids<action::End>() == "c");
  SUBCASE("and the last one ends the job") {
    round.complete("d");
    CHECK(round.ids<action::End>() == "hd");
    CHECK(round.end_of("h").exit_code == 0);
    round.goodbye("d");
    round.goodbye("c");
    round.goodbye("h");
    CHECK(round.all<action::Closed>().size() == 1);
  }
  SUBCASE("and no other attempt can follow without them") {
    round.settle_failed("d", 6, 4);
    CHECK(round.end_of("h").exit_code == 4);
    CHECK(round.contains(round.end_of("h").why, "--exit-barrier-timeout"));
  }
}

TEST_CASE("the job closes when each has said goodbye or is lost") {
  Round round(3, 3);
  for (const char* id : {"h", "b", "c"})
    round.join(id);
  for (const char* id : {"h", "b", "c"})
    round.complete(id);
  round.goodbye("h");
  CHECK(round.all<action::Closed>().empty());
  round.lose("b", Lost::kSilent);
  CHECK(round.ids<action::Drop>() == "b");
  CHECK(round.recorded<event::NodeLost>().empty());
  CHECK(round.all<action::Closed>().empty());
  round.goodbye("c");
  CHECK(round.all<action::Closed>().size() == 1);
  round.goodbye("c");
  CHECK(round.last.empty());
}

}  // namespace muster
