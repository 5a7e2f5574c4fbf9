// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "loop/loop_test.h"
#include "rendezvous/etcd_server.h"
#include "rendezvous/test_node.h"
#include "skip.h"

namespace muster {

namespace {

// Nodes of a job whose coordinator a real etcd elects.
struct ElectedTest : LoopTest {
  EtcdServer server;
  Meeting api = Meeting::kEtcdV3;
  bool runs = EtcdServer::installed();
  std::vector<std::unique_ptr<TestNode>> nodes;

  ElectedTest() {
    if (!runs) say_skipped("etcd is not installed");
  }

  void start_etcd() {
    server.start(loop, api == Meeting::kEtcdV2 ? std::vector<std::string>{"--enable-v2=true"}
                                               : std::vector<std::string>{});
  }

  TestNode& add(const std::string& host, int min, int max) {
    LaunchPlan plan = plan_of(min, max, server.port(), host);
    plan.rendezvous.meeting = api;
    plan.rendezvous.local_addr = "127.0.0.1";
    plan.rendezvous.join_timeout = Milliseconds(60'000);
    nodes.push_back(std::make_unique<TestNode>(loop, std::move(plan), 1, 3));
    nodes.back()->link->join();
    return *nodes.back();
  }

  void wait(const std::function<bool()>& done) {
    if (run_until(done, Milliseconds(40'000))) return;
    for (auto& node : nodes)
      node->tell();
    FAIL("what was waited for did not come");
  }
  void wait_all_run(int nodes_in_it) {
    wait([&] {
      return std::all_of(nodes.begin(), nodes.end(), [&](auto& node) {
        return node->running && node->assignment->node_count == nodes_in_it;
      });
    });
  }

  void complete_and_part() {
    for (auto& node : nodes)
      node->settle(true);
    for (auto& node : nodes) {
      wait([&] { return node->end.has_value(); });
      CHECK(node->end->exit_code == 0);
      node->close();
    }
    wait([&] {
      return std::all_of(nodes.begin(), nodes.end(), [](auto& node) { return node->closed; });
    });
  }

  size_t host() const {
    auto found =
        std::find_if(nodes.begin(), nodes.end(), [](auto& node) { return node->link->hosting(); });
    REQUIRE(found != nodes.end());
    return static_cast<size_t>(found - nodes.begin());
  }
};

}  // namespace

TEST_CASE_FIXTURE(ElectedTest,
                  "when the elected coordinator dies another takes over, and all go on") {
  if (!runs) return;
  SUBCASE("v3") {}
  SUBCASE("v2") {
    api = Meeting::kEtcdV2;
  }
  start_etcd();
  add("node-a", 2, 3);
  add("node-b", 2, 3);
  add("node-c", 2, 3);
  wait_all_run(3);
  const int attempt = nodes[0]->assignment->attempt;

  nodes.erase(nodes.begin() + static_cast<long>(host()));
  wait([&] { return nodes[0]->stop && nodes[1]->stop; });
  CHECK(nodes[0]->stop->reason == StopReason::kCoordinatorLost);
  wait_all_run(2);
  CHECK(nodes[host()]->assignment->node == 0);
  for (auto& node : nodes) {
    // The folders of the attempts are still there: numbers go on.
    CHECK(node->assignment->attempt == attempt + 1);
    CHECK(node->assignment->restart_count == 0);
    CHECK(!node->end);
    CHECK(node->said("looking for the next one"));
  }
  complete_and_part();
}

TEST_CASE_FIXTURE(ElectedTest, "restarts that were used count for the next coordinator too") {
  if (!runs) return;
  start_etcd();
  add("node-a", 1, 2);
  wait_all_run(1);
  add("node-b", 1, 2);
  wait_all_run(2);
  nodes[1]->fail(3);
  wait([&] { return nodes[0]->running && nodes[0]->assignment->restart_count == 1; });
  wait_all_run(2);
  nodes.erase(nodes.begin() + static_cast<long>(host()));
  wait([&] { return nodes[0]->link->hosting() && nodes[0]->running; });
  CHECK(nodes[0]->assignment->restart_count == 1);
  complete_and_part();
}

TEST_CASE_FIXTURE(ElectedTest,
                  "a coordinator that loses its office stops all, and they meet again") {
  if (!runs) return;
  start_etcd();
  add("node-a", 2, 2);
  add("node-b", 2, 2);
  wait_all_run(2);
  const int attempt = nodes[0]->assignment->attempt;
  server.kill();
  wait([&] { return nodes[0]->stop && nodes[1]->stop; });
  for (auto& node : nodes) {
    CHECK(node->stop->reason == StopReason::kCoordinatorLost);
    CHECK(!node->link->hosting());
  }
  start_etcd();
  wait_all_run(2);
  CHECK(nodes[0]->assignment->attempt == attempt + 1);
  CHECK(nodes[1]->assignment->attempt == attempt + 1);
  complete_and_part();
}

TEST_CASE_FIXTURE(ElectedTest,
                  "a certificate that cannot be read is an error before anything runs") {
  LaunchPlan plan = plan_of(2, 2, 2379);
  plan.rendezvous.meeting = Meeting::kEtcdV3;
  plan.rendezvous.etcd = {{"protocol", "https"}, {"cacert", "/nonexistent/ca.pem"}};
  auto made = Rendezvous::create(loop, plan, NodeFacts(), {});
  REQUIRE(!made);
  CHECK(made.error().message.find("/nonexistent/ca.pem") != std::string::npos);
}

}  // namespace muster
