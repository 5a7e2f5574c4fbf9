// SPDX-License-Identifier: Apache-2.0
// What follows a failure, as the user wants it.
#include <doctest/doctest.h>

#include "rendezvous/coordinator_fixture.h"
#include "supervisor/rendezvous/coordinator_impl.h"

namespace muster {

using Phase = Coordinator::Phase;

namespace {

using namespace std::chrono_literals;

struct One : Round {
  explicit One(int max_restarts) : Round(1, 1, max_restarts) {}
  AttemptVerdict fail_after(std::chrono::milliseconds ran, int exit_code = 3) {
    pass(ran);
    settle_failed("h", 0, exit_code);
    return *all<action::Tell>().at(0).verdict;
  }
};

// "h", "b" and "c", of which two are needed.
struct Elastic : Round {
  explicit Elastic(const std::string& policy, int max_restarts = 0) : Round(2, 3, max_restarts) {
    settings.terms.failure_policy = policy;
    settings.last_call = 1s;
    join("h");
    join("b");
    join("c");
  }
  AttemptVerdict fails_on(const std::string& id, int rank) {
    fail(id, rank);
    AttemptVerdict told;
    for (const char* other : {"h", "b", "c"}) {
      other == id ? settle_failed(other, rank) : settle_stopped(other);
      if (!all<action::Tell>().empty()) told = *all<action::Tell>()[0].verdict;
    }
    return told;
  }
};

}  // namespace

TEST_CASE("a policy of stop ends the job though the budget would allow a restart") {
  One round(3);
  round.settings.terms.failure_policy = "exit_code=stop";
  round.join("h");
  const AttemptVerdict verdict = round.fail_after(1s, 17);
  CHECK_FALSE(verdict.restarts);
  CHECK(verdict.no_restart == "not retried: --failure-policy stops the job for exit_code");
  CHECK(round.end_of("h").exit_code == 17);
}

TEST_CASE("every node is told why no attempt follows") {
  Round round(2, 2);
  round.join("h");
  round.join("b");
  round.fail("b", 2);
  round.settle_failed("b", 2);
  round.settle_stopped("h");
  CHECK(round.ids<action::Tell>() == "hb");
  CHECK(round.all<action::Tell>()[1].verdict->no_restart ==
        "no restart was allowed (--max-restarts 0)");
}

TEST_CASE("the same failure again and again ends the job, whatever is left of the budget") {
  One round(100);
  round.settings.terms.same_failure_limit = "3/10";
  round.join("h");
  CHECK(round.fail_after(1min).restarts);
  CHECK(round.fail_after(1min).restarts);
  const AttemptVerdict verdict = round.fail_after(1min);
  CHECK_FALSE(verdict.restarts);
  CHECK(round.contains(verdict.no_restart, "the same failure came 3 times within 10 minutes"));
  CHECK(round.end_of("h").exit_code == 3);
}

TEST_CASE("different failures, and equal ones far apart, do not end it") {
  One round(100);
  round.settings.terms.same_failure_limit = "2/10";
  round.join("h");
  for (int i = 0; i < 5; ++i) {
    CHECK(round.fail_after(1min, 3 + i).restarts);
    CHECK(round.fail_after(11min, 3).restarts);
    round.pass(11min);
  }
}

TEST_CASE("equal failures of attempts that come further and further do not end it") {
  Round round(2, 2, 100);
  round.settings.terms.same_failure_limit = "2/10";
  round.join("h");
  round.join("b");
  for (int64_t step : {10, 20, 20}) {
    NodeOutcome outcome;
    outcome.attempt = round.coordinator().attempt();
    outcome.step = step;
    round.settle_failed("h", 0);
    round.settle("b", outcome);
    CHECK(round.all<action::Tell>().at(0).verdict->restarts == (outcome.attempt < 2));
  }
}

TEST_CASE("failures in a row put the next attempt off longer and longer") {
  One round(100);
  round.settings.terms.restart_backoff = "2:5";
  round.join("h");
  CHECK(round.fail_after(1s).delay_ms == 0);
  CHECK(round.ids<action::Assign>() == "h");
  for (auto delay : {2'000ms, 4'000ms, 5'000ms, 5'000ms}) {
    CHECK(round.fail_after(1s).delay_ms == delay.count());
    CHECK(round.ids<action::Assign>() == "");
    CHECK(round.coordinator().wake_at() == round.now + delay);
    round.pass(delay - 1ms);
    CHECK(round.ids<action::Assign>() == "");
    round.pass(1ms);
    CHECK(round.ids<action::Assign>() == "h");
  }
  CHECK(round.fail_after(10min).delay_ms == 0);
  CHECK(round.ids<action::Assign>() == "h");
}

TEST_CASE("a signal ends the job while a restart is put off") {
  One round(100);
  round.settings.terms.restart_backoff = "60";
  round.join("h");
  round.fail_after(1s);
  round.fail_after(1s);
  round.signal("h");
  CHECK(round.end_of("h").outcome == Outcome::kStopped);
  CHECK(round.end_of("h").exit_code == 143);
}

TEST_CASE("a restart that is put off comes at once when somebody asks for it") {
  One round(100);
  round.settings.terms.restart_backoff = "60";
  round.join("h");
  round.fail_after(1s);
  round.fail_after(1s);
  CHECK(round.restart("h") == "");
  CHECK(round.recorded<event::RestartRequested>().size() == 1);
  CHECK(round.ids<action::Assign>() == "h");
}

TEST_CASE("nodes that are all here are not counted aloud while a restart is put off") {
  Round round(2, 2, 9);
  round.settings.terms.restart_backoff = "60";
  round.join("h");
  round.join("b");
  for (int i = 0; i < 2; ++i) {
    round.fail("b", 2);
    round.settle_failed("b", 2);
    round.settle_stopped("h");
  }
  CHECK(round.recorded<event::NodesAwaited>().empty());
  CHECK(round.coordinator().wake_at() == round.now + 60s);
  round.pass(30s);
  CHECK(round.recorded<event::NodesAwaited>().empty());
  // Once one is missing, it is awaited, and for as long as ever.
  round.lose("b");
  CHECK(round.recorded<event::NodesAwaited>().size() == 1);
  round.pass(30s);
  CHECK(round.coordinator().phase() == Phase::kForming);
  round.join("b");
  CHECK(round.ids<action::Assign>() == "hb");
}

TEST_CASE("a node is left out for a kind of failure, and the others go on without a charge") {
  Elastic round("exit_code=stop-and-exclude-node");
  const AttemptVerdict verdict = round.fails_on("b", 2);
  CHECK(verdict.restarts);
  CHECK(verdict.excluded == 1);
  CHECK(verdict.restart_count == 0);
  CHECK(round.ids<action::End>() == "b");
  CHECK(round.end_of("b").outcome == Outcome::kFailed);
  CHECK(round.end_of("b").exit_code == 3);
  const std::string why =
      "node-b is excluded from this job: rank 2, exit_code in attempt 0 (--failure-policy)";
  CHECK(round.end_of("b").why == why);
  const auto lost = round.recorded<event::NodeLost>();
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].id == "b");
  CHECK(lost[0].node == 1);
  CHECK(lost[0].how == "excluded");
  CHECK(lost[0].message == why);
  round.goodbye("b");
  CHECK(round.recorded<event::NodeLost>().empty());
  round.pass(1s);
  CHECK(round.ids<action::Assign>() == "hc");
}

TEST_CASE("an excluded host is refused with the reason when it comes again") {
  Elastic round("exit_code=stop-and-exclude-node");
  round.fails_on("b", 2);
  round.goodbye("b");
  NodeFacts again = round.facts("other");
  again.host = "node-b";
  round.join(again);
  REQUIRE(round.all<action::Refuse>().size() == 1);
  CHECK(round.all<action::Refuse>()[0].final);
  CHECK(round.all<action::Refuse>()[0].reason ==
        "node-b is excluded from this job: rank 2, exit_code in attempt 0 (--failure-policy)");
}

TEST_CASE("a node that was cut off and came again before the end of the attempt is left out too") {
  Round round(2, 2);
  round.settings.terms.failure_policy = "exit_code=stop-and-exclude-node";
  round.join("h");
  round.join("b");
  SUBCASE("without workers") {
    round.fail("b", 2);
    round.settle_failed("b", 2);
    round.lose("b", Round::Lost::kSilent);
    round.join("b");
    round.settle_stopped("h");
    CHECK(round.ids<action::End>() == "b");
    CHECK(round.ids<action::Assign>() == "");
  }
  SUBCASE("with workers that it still ends") {
    round.fail("b", 2);
    round.lose("b", Round::Lost::kSilent);
    round.join_with_workers("b", 0);
    round.settle_stopped("h");
    CHECK(round.ids<action::End>() == "");
    round.settle_stopped("b");
    CHECK(round.ids<action::End>() == "b");
    CHECK(round.contains(round.end_of("b").why, "node-b is excluded from this job"));
  }
}

TEST_CASE("a spare takes the place of the node that is left out") {
  Round round(2, 2);
  round.settings.terms.failure_policy = "exit_code=stop-and-exclude-node";
  for (const char* id : {"h", "b", "s"})
    round.join(id);
  round.fail("b", 2);
  round.settle_failed("b", 2);
  round.settle_stopped("h");
  CHECK(round.ids<action::Assign>() == "hs");
  CHECK(round.assignment_of("s").node == 1);
}

TEST_CASE("the place of a node that is left out is awaited as that of a lost one") {
  Round round(2, 2);
  round.settings.terms.failure_policy = "exit_code=stop-and-exclude-node";
  round.join("h");
  round.join("b");
  round.fail("b", 2);
  round.settle_failed("b", 2);
  round.settle_stopped("h");
  CHECK(round.contains(round.said(), "waiting for a replacement of node-b"));
  round.goodbye("b");
  round.pass(round.settings.join_timeout);
  CHECK(round.contains(round.end_of("h").why, "no replacement of node-b came"));
}

TEST_CASE("the node where all meet cannot be left out") {
  Elastic round("any=stop-and-exclude-node", 9);
  const AttemptVerdict verdict = round.fails_on("h", 0);
  CHECK_FALSE(verdict.restarts);
  CHECK(verdict.excluded == -1);
  CHECK(verdict.no_restart ==
        "not retried: --failure-policy excludes the node for exit_code, but the nodes meet there");
  CHECK(round.ids<action::End>() == "hbc");
}

TEST_CASE("a job that stands still is charged, and no node is left out unless a rank differs") {
  for (const char* policy : {"", "hung=stop-and-exclude-node", "hung=restart"}) {
    Elastic round(policy, 1);
    event::FailureFound found = Round::failure(-1);
    found.kind = "hung";
    found.attempt = 0;
    found.can_heal = false;
    round.coordinator().hung(found, round.now);
    for (const char* id : {"h", "b", "c"})
      round.settle_stopped(id);
    const AttemptVerdict verdict = *round.all<action::Tell>().at(0).verdict;
    CHECK(verdict.excluded == -1);
    CHECK(verdict.restarts == (std::string(policy) == "hung=restart"));
    CHECK(verdict.restart_count == (verdict.restarts ? 1 : 0));
    CHECK(verdict.no_restart.empty() == verdict.restarts);
  }
}

TEST_CASE("one node alone is not left out") {
  One round(9);
  round.settings.terms.failure_policy = "any=stop-and-exclude-node";
  round.join("h");
  CHECK(round.contains(round.fail_after(1s).no_restart, "but there is no other"));
}

TEST_CASE("a lost node may be kept from coming back") {
  Elastic round("node_lost=stop-and-exclude-node");
  round.lose("b");
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK(round.all<action::Tell>().at(0).verdict->restarts);
  round.join("b");
  REQUIRE(round.all<action::Refuse>().size() == 1);
  CHECK(round.contains(round.all<action::Refuse>()[0].reason, ": node_lost in attempt 0 ("));
}

TEST_CASE("a lost node may end the job") {
  Elastic round("node_lost=stop");
  round.lose("b");
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK(round.contains(round.all<action::Tell>().at(0).verdict->no_restart, "for node_lost"));
  CHECK(round.end_of("c").outcome == Outcome::kFailed);
}

TEST_CASE("nobody is left out once a signal has ended the job") {
  Elastic round("any=stop-and-exclude-node");
  round.fail("b", 2);
  round.signal("h");
  round.settle_failed("b", 2);
  round.settle_stopped("h");
  round.settle_stopped("c");
  CHECK(round.end_of("b").outcome == Outcome::kStopped);
  CHECK(round.recorded<event::NodeLost>().empty());
}

TEST_CASE("no more hosts are excluded than are remembered") {
  Round round(2, 2);
  round.settings.terms.failure_policy = "any=stop-and-exclude-node";
  round.join("h");
  for (size_t i = 0; i < kMaxExcluded; ++i) {
    const std::string id = "n" + std::to_string(i);
    round.join(id);
    round.fail(id, 2);
    round.settle_stopped("h");
    round.settle_failed(id, 2);
    REQUIRE(round.ids<action::End>() == id);
    round.goodbye(id);
  }
  round.join("last");
  round.fail("last", 2);
  round.settle_stopped("h");
  round.settle_failed("last", 2);
  CHECK(round.contains(round.all<action::Tell>().at(0).verdict->no_restart, "too many"));
}

TEST_CASE("a node that wants other restarts is refused") {
  Round round(2, 2);
  round.settings.terms.restart_backoff = "5";
  round.join("h");
  NodeFacts other = round.facts("b");
  other.terms.failure_policy = "segfault=stop";
  other.terms.same_failure_limit = "3/10";
  other.terms.restart_backoff = "7";
  round.join(other);
  REQUIRE(round.all<action::Refuse>().size() == 1);
  const std::string reason = round.all<action::Refuse>()[0].reason;
  CHECK(round.contains(reason, "--failure-policy is segfault=stop here and not given at node-h"));
  CHECK(round.contains(reason, "--same-failure-limit is 3/10 here and 0 at node-h"));
  CHECK(round.contains(reason, "--restart-backoff is 7 here and 5 at node-h"));
}

}  // namespace muster
