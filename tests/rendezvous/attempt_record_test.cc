// SPDX-License-Identifier: Apache-2.0
// One decision over the failures of all nodes.
#include "supervisor/rendezvous/attempt_record.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {

using Lost = Coordinator::Lost;

namespace {

constexpr int64_t kNoon = 1'795'953'600'000'000;

event::FailureFound failed(int rank, int64_t after_us = 0, std::string kind = "exit_code") {
  event::FailureFound failure;
  failure.rank = rank;
  failure.kind = std::move(kind);
  failure.exit_code = 3;
  failure.message = "message of " + std::to_string(rank);
  failure.time_us = kNoon + after_us;
  return failure;
}

event::FailureFound victim(int rank, std::string blames, int64_t after_us = 0,
                           std::string kind = "connection_lost") {
  event::FailureFound failure = failed(rank, after_us, std::move(kind));
  failure.victim = true;
  failure.blames = std::move(blames);
  return failure;
}

// Three nodes of two ranks each.
struct Record : AttemptRecord {
  Record() : AttemptRecord(0, {{"node-a", 0, 2}, {"node-b", 2, 2}, {"node-c", 4, 2}}) {}

  void settles(int node, std::vector<event::FailureFound> failures = {}) {
    NodeOutcome outcome = outcomes_[static_cast<size_t>(node)];
    if (!failures.empty()) {
      outcome.root = failures.front();
      outcome.others.assign(failures.begin() + 1, failures.end());
    }
    settled(node, std::move(outcome));
  }
  // The same, but its stop takes long.
  void lingers(int node, std::vector<event::FailureFound> failures = {}) {
    NodeOutcome so_far = outcomes_[static_cast<size_t>(node)];
    so_far.early = true;
    if (!failures.empty()) {
      so_far.root = failures.front();
      so_far.others.assign(failures.begin() + 1, failures.end());
    }
    ending(node, std::move(so_far));
  }
  NodeOutcome& of(int node) { return outcomes_[static_cast<size_t>(node)]; }

  // "4 2": the root and the other independent ones, and "| 0 1" the victims.
  std::string guilty() const {
    const Findings found = findings();
    if (!found.root) return "";
    std::string text = std::to_string(found.root->rank), victims;
    for (const event::FailureFound& other : found.others)
      (other.victim ? victims : text) += " " + std::to_string(other.rank);
    return victims.empty() ? text : text + " |" + victims;
  }

 private:
  std::vector<NodeOutcome> outcomes_ = std::vector<NodeOutcome>(3);
};

}  // namespace

TEST_CASE("the first failure by the coordinator's clock is the root, not the first news") {
  Record record;
  record.failed(1, failed(2, 900));
  record.failed(2, failed(5, 400));
  record.settles(0);
  record.settles(1, {failed(2, 900), failed(3, 1'000)});
  record.settles(2, {failed(5, 400)});
  CHECK(record.guilty() == "5 2 3");
  CHECK(record.findings().root->host == "node-c");
  CHECK(record.findings().charged);
}

TEST_CASE("whoever tells no time comes where his news came") {
  Record record;
  event::FailureFound timeless = failed(2);
  timeless.time_us = 0;
  record.failed(2, failed(5, 400));
  record.failed(1, timeless);
  record.failed(0, failed(0, 100));
  CHECK(record.guilty() == "0 5 2");
}

TEST_CASE("the time of a notice, looked at when it came, holds for the outcome too") {
  Record record;
  record.failed(1, failed(2, 900));
  record.failed(2, failed(5, 950));
  record.settles(0);
  record.settles(1, {failed(3, 60'000'000), failed(2, 60'000'100)});  // its clock was set
  record.settles(2, {failed(5, 950)});
  CHECK(record.guilty() == "3 2 5");
  CHECK(record.findings().root->time_us == kNoon + 800);
}

TEST_CASE("victims of one node lead to a culprit on another that died later") {
  Record record;
  record.failed(0, victim(1, ""));
  record.failed(2, victim(4, "1", 100));
  record.settles(0, {victim(1, ""), victim(0, "", 50)});
  record.of(1).victims = {{"2", "stopped by muster"}};
  record.settles(1, {failed(3, 500'000)});
  record.settles(2, {victim(4, "1", 100)});
  CHECK(record.guilty() == "3 | 1 0 4");
  const auto found = record.findings();
  REQUIRE(found.victims.size() == 3);
  CHECK(found.victims[0].ranks == "2");
  CHECK(found.victims[1].ranks == "0-1");
  CHECK(found.victims[1].reason == "lost others, exited with code 3");
  CHECK(found.victims[2].ranks == "4");
  CHECK(found.victims[2].reason == "lost rank 1, exited with code 3");
}

TEST_CASE("a culprit that was stopped before it had ended is found by what it had shown") {
  Record record;
  record.failed(0, victim(1, "4"));
  record.settles(0, {victim(1, "4")});
  record.settles(1);
  event::FailureFound slow = failed(4, 700'000, "cpp_exception");
  record.of(2).suspects = {slow, failed(5, 700'000, "")};
  record.of(2).victims = {{"4-5", "stopped by muster"}};
  record.settles(2);
  CHECK(record.guilty() == "4 | 1");
  const auto found = record.findings();
  CHECK(found.root->kind == "cpp_exception");
  CHECK(found.root->host == "node-c");
  CHECK(found.charged);
  REQUIRE(found.victims.size() == 2);
  CHECK_MESSAGE(found.victims[0].ranks == "5", "the culprit is nobody's victim");
}

TEST_CASE("a rank of which its node tells nothing can be blamed too") {
  Record record;
  record.failed(0, victim(0, "5", 0, "collective_timeout"));
  record.settles(0, {victim(0, "5", 0, "collective_timeout")});
  record.settles(1);
  record.settles(2);
  const auto found = record.findings();
  REQUIRE(found.root);
  CHECK(found.root->rank == 5);
  CHECK(found.root->kind == "hung");
  CHECK(found.root->host == "node-c");
  CHECK(found.root->node == 2);
  CHECK(found.root->local_rank == 1);
}

TEST_CASE("a rank that failed beyond those that its node lists does not hang") {
  Record record;
  record.failed(0, victim(0, "5", 0, "collective_timeout"));
  record.settles(0, {victim(0, "5", 0, "collective_timeout")});
  record.settles(1);
  record.of(2).more_failed = "5";
  record.settles(2, {victim(4, "", 100)});
  CHECK(record.guilty() == "0 | 4");
}

TEST_CASE("the one rank of all nodes that did not give up waiting is hung") {
  Record record;
  auto late = [](int rank) { return victim(rank, "", rank, "collective_timeout"); };
  record.failed(0, late(0));
  record.settles(0, {late(0), late(1)});
  record.settles(1, {late(2)});
  SUBCASE("one") {
    record.settles(2, {late(4), late(5)});
    CHECK(record.guilty() == "3 | 0 1 2 4 5");
    CHECK(record.findings().root->kind == "hung");
  }
  SUBCASE("two") {
    record.settles(2, {late(4)});
    CHECK(record.guilty() == "0 | 1 2 4");
  }
  SUBCASE("one, where a node has failures beyond those it lists") {
    record.of(2).more_failed = "3,5";  // 3 is not its own
    record.settles(2, {late(4)});
    CHECK(record.guilty() == "3 | 0 1 2 4");
  }
}

TEST_CASE("a rank that finished while others needed it is found on any node") {
  for (bool whole_node : {false, true}) {
    Record record;
    record.failed(0, victim(0, "4"));
    record.settles(0, {victim(0, "4")});
    record.settles(1);
    record.of(2).complete = whole_node;
    if (!whole_node) record.of(2).finished = "1,4";  // 1 is not its own
    record.settles(2);
    const auto found = record.findings();
    REQUIRE(found.root);
    CHECK(found.root->rank == 4);
    CHECK(found.root->kind == "finished_early");
    CHECK(found.root->host == "node-c");
    CHECK(found.root->exit_code == 3);
  }
}

TEST_CASE("a crash that was told before a node's connection closed is the root, and charged") {
  for (const char* kind : {"segfault", "exit_code"}) {
    Record record;
    record.failed(0, failed(0, 0, kind));
    record.gone(1, Lost::kClosed);
    record.settles(0, {failed(0, 0, kind)});
    record.settles(2);
    const auto found = record.findings();
    const bool own = kind == std::string("segfault");
    CHECK(found.root->kind == (own ? "segfault" : "node_lost"));
    CHECK(found.charged == own);
    REQUIRE(found.others.size() == 1);
    CHECK(found.others[0].kind == (own ? "node_lost" : "exit_code"));
  }
}

TEST_CASE("silence began before it was noticed, so that a crash may come of it") {
  Record record;
  record.failed(0, failed(0, 0, "segfault"));
  record.gone(1, Lost::kSilent);
  record.settles(0, {failed(0, 0, "segfault")});
  record.settles(2);
  CHECK(record.findings().root->kind == "node_lost");
}

TEST_CASE("what failed after a stop is listed, but blames nobody") {
  Record record;
  record.gone(1, Lost::kClosed);
  record.stop_ordered();
  record.settles(0, {victim(0, "4", 0, "collective_timeout")});
  record.settles(2);
  CHECK(record.guilty() == "-1 | 0");
}

TEST_CASE("the root that was told early stays, and what comes later is appended") {
  Record record;
  record.failed(1, failed(2));
  CHECK_FALSE(record.find_early());
  record.lingers(1, {failed(2)});
  record.settles(0);
  CHECK_MESSAGE(!record.find_early(), "node-c has not spoken");
  record.lingers(2);
  const std::optional<event::FailureFound> early = record.find_early();
  REQUIRE(early);
  CHECK(early->rank == 2);
  CHECK(early->host == "node-b");
  CHECK_MESSAGE(!record.find_early(), "once");
  record.settles(2, {failed(5, -1'000)});
  record.settles(1, {victim(2, "5"), failed(3, 10)});
  CHECK(record.guilty() == "2 5 3");
}

TEST_CASE("a lost node does not take the place of a root that was told early") {
  Record record;
  record.failed(1, failed(2));
  for (int node : {0, 1, 2})
    record.lingers(node, node == 1 ? std::vector{failed(2)} : std::vector<event::FailureFound>());
  REQUIRE(record.find_early());
  record.gone(2, Lost::kSilent);
  record.settles(0);
  record.settles(1, {failed(2)});
  CHECK(record.findings().root->rank == 2);
  REQUIRE(record.findings().others.size() == 1);
  CHECK(record.findings().others[0].kind == "node_lost");
}

TEST_CASE("no root is told early whose place may be taken") {
  Record record;
  SUBCASE("it shows what another did to it") {
    record.lingers(1, {victim(2, "")});
  }
  SUBCASE("somebody blames a rank that has not ended") {
    record.lingers(1, {victim(2, "5"), failed(3, 10)});
  }
  SUBCASE("nobody has failed") {
    record.lingers(1);
  }
  SUBCASE("all were stopped before it failed") {
    record.stop_ordered();
    record.lingers(1, {failed(2)});
  }
  SUBCASE("a rank hangs") {
    record.hung(failed(4));
    record.lingers(1, {failed(2)});
  }
  record.lingers(0);
  record.lingers(2);
  CHECK_FALSE(record.find_early());
}

TEST_CASE("a victim of a rank that has ended hides its failure from nobody") {
  Record record;
  record.lingers(0, {victim(0, "3")});
  record.lingers(1, {failed(3, 10)});
  record.lingers(2);
  REQUIRE(record.find_early());
  record.settles(0);
  record.settles(1);
  record.settles(2);
  CHECK(record.findings().root->rank == 3);
}

}  // namespace muster
