// SPDX-License-Identifier: Apache-2.0
// Failures: who is to blame, who is stopped, what the budget pays.
#include <doctest/doctest.h>

#include "rendezvous/coordinator_fixture.h"

namespace muster {

using namespace std::chrono_literals;
using Phase = Coordinator::Phase;
using Lost = Coordinator::Lost;

namespace {

struct Three : Round {
  explicit Three(int max_restarts = 1) : Round(3, 3, max_restarts) {
    for (const char* id : {"h", "b", "c"})
      join(id);
  }
  AttemptVerdict verdict() const {
    auto told = all<action::Tell>();
    return told.empty() ? AttemptVerdict{} : *told[0].verdict;
  }
};

}  // namespace

TEST_CASE("one node that fails restarts within its budget and then ends with the exit code") {
  Round round(1, 1, 1);
  round.join("h");
  round.fail("h", 1);
  CHECK(round.all<action::Stop>().empty());
  round.settle_failed("h", 1);
  REQUIRE(round.all<action::Tell>().size() == 1);
  CHECK(round.all<action::Tell>()[0].verdict->restarts);
  CHECK(round.assignment_of("h").attempt == 1);
  CHECK(round.assignment_of("h").restart_count == 1);
  round.settle_failed("h", 0, 7);
  REQUIRE(round.all<action::Tell>().size() == 1);
  CHECK_FALSE(round.all<action::Tell>()[0].verdict->restarts);
  CHECK(round.end_of("h").outcome == Outcome::kFailed);
  CHECK(round.end_of("h").exit_code == 7);
  CHECK(round.end_of("h").why == "");
}

TEST_CASE("the first notice stops all others in the same call, later ones stop nobody") {
  Three round;
  round.fail("b", 3);
  CHECK(round.ids<action::Stop>() == "hc");
  CHECK(round.all<action::Stop>()[0].order.reason == StopReason::kFailure);
  CHECK(round.all<action::Stop>()[0].order.signal == 15);
  CHECK(round.all<action::Stop>()[0].order.why == "rank 3 on node-b failed");
  CHECK(round.coordinator().phase() == Phase::kStopping);
  round.fail("c", 4);
  CHECK(round.last.empty());
}

TEST_CASE("while some are still being stopped the root is told once, and stays") {
  Three round(1);
  round.fail("b", 3);
  round.linger("b", 3);
  CHECK(round.last.empty());
  round.settle_stopped("h");
  CHECK_MESSAGE(round.last.empty(), "c has not spoken");
  round.linger("c");
  CHECK(round.ids<action::Tell>() == "hbc");
  CHECK(round.verdict().early);
  REQUIRE(round.verdict().root);
  CHECK(round.verdict().root->rank == 3);
  CHECK(round.verdict().root->host == "node-b");
  CHECK_FALSE(round.verdict().restarts);
  CHECK(round.coordinator().phase() == Phase::kStopping);
  round.linger("c");
  CHECK_MESSAGE(round.last.empty(), "it is told once");
  round.settle_failed("c", 4);
  CHECK(round.last.empty());
  round.settle_failed("b", 3);
  CHECK(round.ids<action::Tell>() == "hbc");
  CHECK_FALSE(round.verdict().early);
  CHECK(round.verdict().root->rank == 3);
  REQUIRE(round.verdict().others.size() == 1);
  CHECK(round.verdict().others[0].rank == 4);
  CHECK(round.verdict().restart_count == 1);
}

TEST_CASE("who lingers in another attempt, or has gone, is not heard") {
  Three round(1);
  round.fail("b", 3);
  NodeOutcome old;
  old.attempt = 7;
  for (const char* id : {"h", "b", "c", "nobody"})
    round.coordinator().ending(id, old, round.now);
  round.linger("h");
  round.linger("b", 3);
  round.lose("c");
  CHECK_MESSAGE(round.all<action::Tell>().empty(), "its loss may explain the failure");
}

TEST_CASE("a rank that hangs stops all, is the root, and what fails in the stop is no cause") {
  Three round(1);
  round.hang(3);
  CHECK(round.ids<action::Stop>() == "hbc");
  CHECK(round.all<action::Stop>()[0].order.reason == StopReason::kFailure);
  CHECK(round.all<action::Stop>()[0].order.why == "rank 3 hangs");
  CHECK(round.all<action::Stop>()[0].order.hung == "3");
  round.fail("c", 4);
  round.settle_failed("c", 4);
  round.settle_stopped("b");
  round.settle_stopped("h");
  REQUIRE(round.verdict().root);
  CHECK(round.verdict().root->kind == "hung");
  CHECK(round.verdict().root->rank == 3);
  CHECK(round.verdict().root->host == "node-b");
  CHECK(round.verdict().root->node == 1);
  CHECK(round.verdict().root->local_rank == 1);
  CHECK(round.verdict().restarts);
  CHECK(round.verdict().restart_count == 1);
}

TEST_CASE("a hang that no restart can heal ends the job, and so does one without a rank") {
  Three round(1);
  round.hang(-1, false);
  CHECK(round.all<action::Stop>()[0].order.hung == "0-5");
  CHECK(round.all<action::Stop>()[0].order.why == "the job stands still");
  for (const char* id : {"h", "b", "c"})
    round.settle_stopped(id);
  REQUIRE(round.verdict().root);
  CHECK(round.verdict().root->rank == -1);
  CHECK_FALSE(round.verdict().restarts);
  CHECK(round.end_of("h").outcome == Outcome::kFailed);
  CHECK(round.end_of("h").exit_code == 1);
}

TEST_CASE("a hang in what is being stopped already means nothing") {
  Three round(1);
  round.fail("b", 3);
  round.hang(0);
  CHECK(round.all<action::Stop>().empty());
  round.settle_failed("b", 3);
  round.settle_stopped("c");
  round.settle_stopped("h");
  REQUIRE(round.verdict().root);
  CHECK(round.verdict().root->rank == 3);
  CHECK(round.verdict().root->kind == "exit_code");
}

TEST_CASE("a node that is lost while a hang is ended is the cause") {
  Three round(1);
  round.hang(3);
  round.lose("b");
  round.settle_stopped("c");
  round.settle_stopped("h");
  REQUIRE(round.verdict().root);
  CHECK(round.verdict().root->kind == "node_lost");
}

TEST_CASE("a node that only lost a peer is not to blame when the peer's failure is known") {
  Three round(0);
  round.fail("b", 3);
  round.fail("c", 4);
  NodeOutcome lost;
  lost.root = Round::failure(3);
  lost.root->comm_error = "peer_lost";
  round.settle("b", lost);
  round.settle_failed("c", 4);
  round.settle_stopped("h");
  REQUIRE(round.verdict().root);
  CHECK(round.verdict().root->rank == 4);
  REQUIRE(round.verdict().others.size() == 1);
  CHECK(round.verdict().others[0].rank == 3);
}

TEST_CASE("the pages of all nodes are looked at together, and each tells of its own ranks") {
  Three round(0);
  auto operations = [](int rank, bool inside) {
    auto made = std::make_shared<RankOperations>();
    RankCommunicator& world = made->communicators.emplace_back();
    world.rank = rank;
    world.size = 6;
    world.members = {{0, 1, 6}};
    if (!inside) return made;
    RankCall& call = world.calls.emplace_back();
    call.sequence = world.collectives = 1;
    call.age_us = 20'000'000;
    return made;
  };
  round.fail("c", 5);
  NodeOutcome outcome;
  for (int rank = 0; rank < 2; ++rank)
    outcome.operations.push_back({rank, RankEnd::kRunning, 0, operations(rank, true)});
  outcome.operations.push_back({4, RankEnd::kDied, 0, operations(4, true)});  // not its own
  round.settle("h", outcome);
  outcome.operations.clear();
  for (int rank = 2; rank < 4; ++rank)
    outcome.operations.push_back({rank, RankEnd::kRunning, 0, operations(rank, true)});
  round.settle("b", outcome);
  outcome.operations.clear();
  outcome.operations.push_back({4, RankEnd::kRunning, 0, operations(4, true)});
  outcome.operations.push_back({5, RankEnd::kDied, 0, operations(5, false)});
  outcome.root = Round::failure(5);
  round.settle("c", outcome);
  REQUIRE(round.verdict().collectives.found.size() == 1);
  CHECK(round.verdict().collectives.found[0].text ==
        "rank 5 died before it entered barrier #1; ranks 0-4 wait since 20 s");
}

TEST_CASE("a job that is stopped tells what its workers were in, lost nodes too") {
  Three round(0);
  auto operations = std::make_shared<RankOperations>();
  RankCommunicator& world = operations->communicators.emplace_back();
  world.size = 6;
  world.members = {{0, 1, 6}};
  RankCall& call = world.calls.emplace_back();
  call.sequence = world.collectives = 1;
  call.age_us = 20'000'000;
  round.signal("h");
  NodeOutcome outcome;
  outcome.operations = {{0, RankEnd::kRunning, 0, operations}};
  round.settle("h", outcome);
  round.lose("c");
  round.settle_stopped("b");
  REQUIRE(round.all<action::Tell>().size() > 0);
  CHECK(round.verdict().collectives.found.at(0).suspects == "4-5");
  CHECK(round.verdict().collectives.found[0].text ==
        "ranks 4-5 have died; rank 0 waits since 20 s in barrier #1");
}

TEST_CASE("who has finished is not stopped") {
  Three round;
  round.complete("h");
  round.fail("b", 3);
  CHECK(round.ids<action::Stop>() == "c");
}

TEST_CASE("the root is of the node whose notice came first, the rest follows in that order") {
  Three round;
  round.fail("c", 5);
  round.fail("b", 2);
  round.settle_stopped("h");
  round.settle_failed("b", 3, 9);  // the full outcome names another rank than the first glance
  CHECK(round.all<action::Tell>().empty());
  NodeOutcome outcome;
  outcome.root = Round::failure(4, 6);
  outcome.others = {Round::failure(5)};
  round.settle("c", outcome);
  CHECK(round.ids<action::Tell>() == "hbc");
  AttemptVerdict verdict = round.verdict();
  REQUIRE(verdict.root);
  CHECK(verdict.root->rank == 4);
  CHECK(verdict.root->host == "node-c");
  CHECK(verdict.root->node == 2);
  REQUIRE(verdict.others.size() == 2);
  CHECK(verdict.others[0].rank == 5);
  CHECK(verdict.others[1].rank == 3);
  CHECK(verdict.restarts);
  CHECK(verdict.restart_count == 1);
  for (const char* id : {"h", "b", "c"}) {
    CHECK(round.assignment_of(id).attempt == 1);
    CHECK(round.assignment_of(id).restart_count == 1);
  }
}

TEST_CASE("a failure without a notice counts when its node settles") {
  Three round;
  round.settle_failed("b", 2);
  CHECK(round.ids<action::Stop>() == "hc");
}

TEST_CASE("a repeated notice or outcome changes nothing") {
  Three round;
  round.fail("b", 2);
  round.fail("b", 3);
  round.settle_failed("b", 2);
  CHECK(round.last.empty());
  round.settle_failed("b", 3);
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK(round.verdict().root->rank == 2);
  CHECK(round.verdict().others.empty());
}

TEST_CASE("who told of a failure cannot be complete") {
  Three round(1);
  round.fail("b", 2);
  for (const char* id : {"h", "b", "c"})
    round.complete(id);
  REQUIRE(round.verdict().root);
  CHECK(round.verdict().restarts);
  CHECK(round.ids<action::Assign>() == "hbc");
}

TEST_CASE("news of an older attempt is no news") {
  Three round(2);
  round.fail("b", 2);
  for (const char* id : {"h", "b", "c"})
    round.settle_stopped(id);
  REQUIRE(round.coordinator().attempt() == 1);
  round.coordinator().failed("b", {0, Round::failure(2)}, round.now);
  NodeOutcome old;
  round.coordinator().settled("b", old, round.now);
  CHECK(round.coordinator().take_actions().empty());
  CHECK(round.coordinator().phase() == Phase::kRunning);
}

TEST_CASE("a used budget ends every node with the same code") {
  Three round(0);
  round.fail("b", 2);
  round.settle_failed("b", 2, 17);
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK(round.ids<action::Tell>() == "hbc");
  CHECK_FALSE(round.verdict().restarts);
  CHECK(round.ids<action::End>() == "hbc");
  for (const char* id : {"h", "b", "c"})
    CHECK(round.end_of(id).exit_code == 17);
}

TEST_CASE("what cannot heal is not retried unless it is asked for") {
  for (bool always : {false, true}) {
    Round round(1, 1, 3);
    round.settings.terms.restart_always = always;
    round.join("h");
    NodeOutcome outcome;
    outcome.root = Round::failure(0);
    outcome.root->can_heal = false;
    round.settle("h", outcome);
    CHECK(round.all<action::Assign>().size() == (always ? 1 : 0));
  }
}

TEST_CASE("spares hear of the failure too") {
  Three round;
  round.join("s");
  round.fail("b", 2);
  for (const char* id : {"h", "b", "c"})
    round.settle_stopped(id);
  CHECK(round.ids<action::Tell>() == "hbcs");
  CHECK(round.ids<action::Assign>() == "hbc");
}

TEST_CASE("victims of all nodes are folded by reason") {
  Three round;
  round.fail("c", 5);
  NodeOutcome outcome;
  outcome.victims = {{"0-1", "stopped by muster"}};
  round.settle("h", outcome);
  outcome.victims = {{"2", "stopped by muster"}, {"3", "killed by SIGKILL"}, {"0", "not mine"}};
  round.settle("b", outcome);
  NodeOutcome failed;
  failed.root = Round::failure(5);
  failed.victims = {{"4", "stopped by muster"}, {"5", "stopped by muster"}};
  round.settle("c", failed);
  REQUIRE(round.verdict().victims.size() == 2);
  CHECK(round.verdict().victims[0].ranks == "0-2,4");
  CHECK(round.verdict().victims[0].reason == "stopped by muster");
  CHECK(round.verdict().victims[1].ranks == "3");
}

TEST_CASE("a lost node is the root, is not charged, and failures elsewhere are listed with it") {
  Three round(0);
  SUBCASE("lost first") {
    round.lose("b");
    CHECK(round.ids<action::Drop>() == "b");
    CHECK(round.ids<action::Stop>() == "hc");
    CHECK(round.all<action::Stop>()[0].order.reason == StopReason::kMembership);
    CHECK(round.all<action::Stop>()[0].order.why == "node-b was lost");
    REQUIRE(round.recorded<event::NodeLost>().size() == 1);
    CHECK(round.recorded<event::NodeLost>()[0].node == 1);
    CHECK(round.recorded<event::NodeLost>()[0].how == "closed");
    round.fail("c", 4);
  }
  SUBCASE("noticed after what it caused") {
    round.fail("c", 4);
    CHECK(round.ids<action::Stop>() == "hb");
    round.lose("b");
    CHECK_MESSAGE(round.all<action::Stop>().empty(), "the stop that was ordered goes on");
  }
  round.settle_failed("c", 4);
  round.settle_stopped("h");
  AttemptVerdict verdict = round.verdict();
  REQUIRE(verdict.root);
  CHECK(verdict.root->kind == "node_lost");
  CHECK(verdict.root->rank == -1);
  CHECK(verdict.root->host == "node-b");
  CHECK(verdict.root->message == "node-b was lost: its connection was closed");
  REQUIRE(verdict.others.size() == 1);
  CHECK(verdict.others[0].rank == 4);
  CHECK(verdict.restarts);
  CHECK(verdict.restart_count == 0);
  CHECK(round.coordinator().phase() == Phase::kForming);
  CHECK(round.contains(round.said(), "waiting for a replacement of node-b"));
  round.join("d");
  CHECK(round.ids<action::Assign>() == "hdc");
  CHECK(round.assignment_of("d").node == 1);
  CHECK(round.assignment_of("d").attempt == 1);
  CHECK(round.assignment_of("d").restart_count == 0);
}

TEST_CASE("a node that told of its failure first and was lost then is to blame and charged") {
  Three round;
  round.fail("b", 3, 5);
  round.lose("b");
  round.settle_stopped("h");
  round.settle_stopped("c");
  AttemptVerdict verdict = round.verdict();
  REQUIRE(verdict.root);
  CHECK(verdict.root->rank == 3);
  CHECK(verdict.root->host == "node-b");
  CHECK(round.contains(verdict.root->note, "was lost"));
  CHECK(verdict.restart_count == 1);
  REQUIRE(verdict.others.size() == 1);
  CHECK(verdict.others[0].kind == "node_lost");
  REQUIRE(verdict.victims.size() == 1);
  CHECK(verdict.victims[0].ranks == "2");
  CHECK(verdict.victims[0].reason == "lost with their node");
}

TEST_CASE("a node lost after it had settled is no failure") {
  Three round;
  round.fail("b", 3);
  round.settle_stopped("c");
  round.lose("c");
  round.settle_failed("b", 3);
  round.settle_stopped("h");
  CHECK(round.verdict().root->rank == 3);
  CHECK(round.verdict().restart_count == 1);
  CHECK(round.coordinator().phase() == Phase::kForming);
}

TEST_CASE("a node whose work was done may be lost, the job goes on") {
  Three round;
  round.complete("b");
  round.lose("b");
  CHECK(round.recorded<event::NodeLost>().size() == 1);
  CHECK(round.all<action::Stop>().empty());
  round.complete("h");
  round.complete("c");
  CHECK(round.ids<action::End>() == "hc");
  CHECK(round.end_of("h").exit_code == 0);
}

TEST_CASE("who leaves changes the membership and fails nothing") {
  Three round;
  round.lose("b", Lost::kLeft);
  CHECK(round.all<action::Drop>().empty());
  CHECK(round.all<action::Stop>()[0].order.why == "node-b left");
  round.fail("c", 4);
  round.settle_failed("c", 4);
  round.settle_stopped("h");
  CHECK_FALSE(round.verdict().root);
  CHECK(round.verdict().restarts);
  CHECK(round.verdict().restart_count == 0);
}

TEST_CASE("who fails and then leaves has failed") {
  Three round;
  round.fail("b", 3);
  round.lose("b", Lost::kLeft);
  round.settle_stopped("h");
  round.settle_stopped("c");
  REQUIRE(round.verdict().root);
  CHECK(round.verdict().root->rank == 3);
  CHECK(round.verdict().restart_count == 1);
}

TEST_CASE("the host is never lost, and a goodbye before the end is a leave") {
  Three round;
  round.lose("h", Lost::kSilent);
  CHECK(round.last.empty());
  round.goodbye("b");
  CHECK(round.recorded<event::NodeLost>().at(0).how == "left");
  CHECK(round.ids<action::Stop>() == "hc");
}

TEST_CASE("a node that stopped on its own changes the membership and fails nothing") {
  Three round(0);
  round.settle_stopped("b");
  CHECK(round.ids<action::Stop>() == "hc");
  CHECK(round.all<action::Stop>()[0].order.reason == StopReason::kMembership);
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK_FALSE(round.verdict().root);
  CHECK(round.ids<action::Assign>() == "hbc");
}

TEST_CASE("a node lost while a signal stops the job leaves it stopped") {
  Three round;
  round.signal("c");
  round.lose("b");
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK(round.verdict().root->kind == "node_lost");
  CHECK_FALSE(round.verdict().restarts);
  CHECK(round.end_of("h").exit_code == 143);
}

TEST_CASE("what fails after a stop was ordered has failed because of it") {
  Three round(0);
  SUBCASE("a signal") {
    round.signal("h");
    round.fail("b", 3);
    round.settle_failed("b", 3);
    round.settle_stopped("h");
    round.settle_stopped("c");
    CHECK(round.all<action::Tell>().empty());
    CHECK(round.end_of("b").exit_code == 143);
  }
  SUBCASE("a node that leaves") {
    round.lose("c", Lost::kLeft);
    round.settle_failed("b", 3);
    round.settle_stopped("h");
    CHECK_FALSE(round.verdict().root);
    CHECK(round.verdict().restarts);
  }
  SUBCASE("an attempt that cannot begin") {
    NodeOutcome trouble;
    trouble.trouble = "disk full";
    round.settle("c", trouble);
    round.settle_failed("b", 3, 9);
    round.settle_stopped("h");
    CHECK(round.all<action::Tell>().empty());
    CHECK(round.end_of("b").exit_code == 1);
    CHECK(round.end_of("b").why == "node-c: disk full");
  }
}

TEST_CASE("a job that grows has no failure, though workers fail when others stop") {
  Round round(1, 3);
  round.settings.last_call = 0ms;
  round.join("h");
  round.join("b");
  round.fail("h", 0);
  round.settle_failed("h", 0);
  CHECK_FALSE(round.all<action::Tell>().at(0).verdict->root);
  CHECK(round.ids<action::Assign>() == "hb");
}

TEST_CASE("the other causes of a storm of failures are bounded") {
  Round round(40, 40);
  round.join("h");
  for (int i = 1; i < 40; ++i)
    round.join("n" + std::to_string(i));
  for (int i = 1; i < 40; ++i)
    round.fail("n" + std::to_string(i), 2 * i);
  round.settle_stopped("h");
  for (int i = 1; i < 40; ++i) {
    NodeOutcome outcome;
    outcome.root = Round::failure(2 * i);
    outcome.victims = {{std::to_string(2 * i + 1), "reason " + std::to_string(i)}};
    round.settle("n" + std::to_string(i), outcome);
  }
  const AttemptVerdict verdict = *round.all<action::Tell>().at(0).verdict;
  CHECK(verdict.root->rank == 2);
  CHECK(verdict.others.size() == kMaxOtherCauses);
  CHECK(verdict.victims.size() == kMaxVictimGroups);
  CHECK(verdict.victims.back().reason == "and other reasons");
}

}  // namespace muster
