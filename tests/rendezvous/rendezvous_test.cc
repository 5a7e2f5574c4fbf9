// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/rendezvous.h"

#include <doctest/doctest.h>
#include <signal.h>

#include "logs/temp_dir.h"
#include "loop/loop_test.h"
#include "rendezvous/relay.h"
#include "rendezvous/scripted_peer.h"
#include "rendezvous/test_node.h"
#include "skip.h"
#include "store/server.h"
#include "store/test_peer.h"

namespace muster {

namespace {

struct RendezvousTest : LoopTest {
  // Of 127.0.0.1, and nobody's.
  const int port = ScriptedPeer(loop).port();
  std::vector<std::unique_ptr<TestNode>> nodes;

  TestNode& add(LaunchPlan plan, int workers = 1, int max_restarts = 0) {
    nodes.push_back(std::make_unique<TestNode>(loop, std::move(plan), workers, max_restarts));
    return *nodes.back();
  }
  TestNode& add(int min, int max, const std::string& host, int workers = 1, int max_restarts = 0) {
    return add(plan_of(min, max, port, host), workers, max_restarts);
  }

  // A node that reaches the coordinator through a relay.
  LaunchPlan plan_through(const Relay& relay, int min, int max, const std::string& host) {
    LaunchPlan plan = plan_of(min, max, relay.port(), host);
    plan.rendezvous.is_host = false;
    return plan;
  }

  void wait(const std::function<bool()>& done) {
    if (run_until(done)) return;
    for (auto& node : nodes)
      node->tell();
    FAIL("what was waited for did not come");
  }
  void wait_running(const TestNode& node) {
    wait([&] { return node.running; });
  }
  void run_both(TestNode& a, TestNode& b) {
    a.link->join();
    b.link->join();
    wait_running(a);
    wait_running(b);
  }
  void wait_end(const TestNode& node) {
    wait([&] { return node.end.has_value(); });
  }

  // Everybody goes home in an orderly way.
  void part() {
    for (auto& node : nodes)
      node->close();
    wait([&] {
      return std::all_of(nodes.begin(), nodes.end(), [](auto& node) { return node->closed; });
    });
  }

  void complete_and_part() {
    for (auto& node : nodes) {
      if (node->running) node->settle(true);
    }
    for (auto& node : nodes) {
      wait_end(*node);
      CHECK(node->end->outcome == Outcome::kSucceeded);
      CHECK(node->end->exit_code == 0);
    }
    part();
  }
};

const event::SignalReceived kSigterm = [] {
  event::SignalReceived signal;
  signal.signal = SIGTERM;
  return signal;
}();

}  // namespace

TEST_CASE_FIXTURE(RendezvousTest, "one node alone hosts its own and waits for nobody") {
  LaunchPlan plan;
  plan.run_id = "run-1";
  plan.host = "node-a";
  plan.store_bind = plan.master_addr = "127.0.0.1";
  TestNode& node = add(plan, 3);
  REQUIRE(node.link->store() != nullptr);
  const int store_port = node.link->store()->port();
  node.link->join();
  CHECK(node.calls.empty());
  wait_running(node);
  CHECK(node.link->hosting());
  CHECK(node.link->store()->port() == store_port);
  CHECK(node.assignment->attempt == 0);
  CHECK(node.assignment->world_size == 3);
  CHECK(node.assignment->node_count == 1);
  CHECK(node.assignment->master_addr == "127.0.0.1");
  CHECK(node.assignment->master_port == store_port);
  complete_and_part();
}

TEST_CASE_FIXTURE(RendezvousTest, "one node's taken port is an error before anything runs") {
  ScriptedPeer taken(loop);
  LaunchPlan plan;
  plan.run_id = "run-1";
  plan.store_bind = plan.master_addr = "127.0.0.1";
  plan.master_port = taken.port();
  NodeFacts facts;
  facts.workers = 1;
  auto made = Rendezvous::create(loop, plan, facts, {});
  REQUIRE(!made);
  CHECK(made.error().message.find(std::to_string(taken.port())) != std::string::npos);
}

TEST_CASE_FIXTURE(RendezvousTest, "two nodes make one job, run, and say goodbye, the host last") {
  TestNode& a = add(2, 2, "node-a", 4);
  TestNode& b = add(2, 2, "node-b", 2);
  SUBCASE("the host first") {
    a.link->join();
    wait([&] { return a.link->hosting(); });
    b.link->join();
  }
  SUBCASE("both at once") {
    a.link->join();
    b.link->join();
  }
  wait_running(a);
  wait_running(b);
  TestNode& host = a.link->hosting() ? a : b;
  TestNode& guest = a.link->hosting() ? b : a;
  CHECK(!guest.link->hosting());
  CHECK(guest.link->store() == nullptr);
  CHECK(host.assignment->node == 0);
  CHECK(guest.assignment->node == 1);
  CHECK(guest.assignment->first_rank == (&host == &a ? 4 : 2));
  CHECK(guest.assignment->world_size == 6);
  CHECK(guest.assignment->master_addr == "127.0.0.1");
  CHECK(guest.assignment->master_port == port);
  CHECK(host.assignment->nodes.size() == 2);

  a.settle(true);
  b.settle(true);
  wait_end(a);
  wait_end(b);
  host.close();
  CHECK(!host.closed);
  guest.close();
  wait([&] { return guest.closed && host.closed; });
}

TEST_CASE_FIXTURE(RendezvousTest, "a node waits for a host that comes late, and says so") {
  LaunchPlan plan = plan_of(2, 2, port, "node-b");
  plan.rendezvous.is_host = false;
  TestNode& b = add(plan);
  b.link->join();
  wait([&] { return !b.lines.empty(); });
  CHECK(b.lines[0].starts_with("waiting for the coordinator at 127.0.0.1:" + std::to_string(port) +
                               ": connection refused; 00:"));
  CHECK(b.lines[0].ends_with(" left"));
  CHECK(!b.link->request_stop(kSigterm, false));
  TestNode& a = add(2, 2, "node-a");
  a.link->join();
  wait_running(a);
  wait_running(b);
  CHECK(b.said(" is there"));
  complete_and_part();
}

TEST_CASE_FIXTURE(RendezvousTest, "a search that never ends well ends at the join time-out") {
  LaunchPlan plan = plan_of(2, 2, port, "node-b");
  plan.rendezvous.is_host = false;
  plan.rendezvous.join_timeout = Milliseconds(300);
  plan.rendezvous.read_timeout = Milliseconds(50);
  std::unique_ptr<ScriptedPeer> peer;
  std::string reason = "connection refused";
  SUBCASE("nobody listens") {}
  SUBCASE("somebody listens and says nothing") {
    peer = std::make_unique<ScriptedPeer>(loop);
    reason = "no answer";
  }
  SUBCASE("something else answers") {
    peer = std::make_unique<ScriptedPeer>(loop);
    peer->greet_with("220 mail.example.org ESMTP\r\n");
    reason = "wrong protocol";
  }
  if (peer) plan.rendezvous.endpoint_port = peer->port();
  TestNode& b = add(plan);
  b.link->join();
  wait_end(b);
  CHECK(b.end->outcome == Outcome::kFailed);
  CHECK(b.end->exit_code == 1);
  CHECK(b.end->why.starts_with("no coordinator at 127.0.0.1:"));
  CHECK(b.end->kind == "rendezvous_timeout");
  CHECK(b.end->why.find(reason) != std::string::npos);
  // What waiting alone will not heal is said at once.
  CHECK(b.said("wrong protocol") == (reason == "wrong protocol"));
  part();
}

TEST_CASE_FIXTURE(RendezvousTest, "another run at the endpoint is named at once") {
  TestNode& a = add(2, 2, "node-a");
  LaunchPlan plan = plan_of(2, 2, port, "node-b");
  plan.rendezvous.is_host = false;
  plan.run_id = "run-2";
  a.link->join();
  wait([&] { return a.link->hosting(); });
  TestNode& b = add(plan);
  b.link->join();
  wait([&] { return b.said("run-1"); });
  CHECK(!b.end);
}

TEST_CASE_FIXTURE(RendezvousTest, "only who knows the token is taken") {
  LaunchPlan plan = plan_of(2, 2, port, "node-a");
  plan.rendezvous.token = "sixteen letters!";
  TestNode& a = add(plan);
  a.link->join();
  wait([&] { return a.link->hosting(); });
  plan.host = "node-b";
  plan.rendezvous.is_host = false;
  SUBCASE("a wrong one") {
    plan.rendezvous.token = "sixteen letters?";
  }
  SUBCASE("none") {
    plan.rendezvous.token.clear();
  }
  TestNode& wrong = add(plan);
  wrong.link->join();
  wait([&] { return wrong.end || wrong.said("token"); });
  if (wrong.end) CHECK(wrong.end->why.find("token") != std::string::npos);
  CHECK(!a.running);
  plan.rendezvous.token = "sixteen letters!";
  TestNode& right = add(plan);
  right.link->join();
  wait_running(right);
  wait_running(a);
}

TEST_CASE_FIXTURE(RendezvousTest, "options that differ end the joiner with the reason") {
  TestNode& a = add(2, 2, "node-a", 1, 3);
  a.link->join();
  wait([&] { return a.link->hosting(); });
  TestNode& b = add(2, 2, "node-b", 1, 4);
  b.link->join();
  wait_end(b);
  CHECK(b.end->exit_code == 1);
  CHECK(b.end->why.find("refuses this node") != std::string::npos);
  CHECK(b.end->kind == "");
}

TEST_CASE_FIXTURE(RendezvousTest, "a failure stops the others, and all restart together") {
  TestNode& a = add(2, 2, "node-a", 1, 1);
  TestNode& b = add(2, 2, "node-b", 1, 1);
  run_both(a, b);
  b.fail(7);
  wait([&] { return a.assignment->attempt == 1 && b.assignment->attempt == 1; });
  CHECK(a.stop->reason == StopReason::kFailure);
  CHECK(a.assignment->restart_count == 1);
  CHECK(b.assignment->restart_count == 1);
  CHECK(a.verdict->root->host == "node-b");
  CHECK(b.verdict->root->exit_code == 7);

  a.fail(9);
  wait_end(a);
  wait_end(b);
  CHECK(a.end->exit_code == 9);
  CHECK(b.end->exit_code == 9);
  CHECK(b.end->outcome == Outcome::kFailed);
  part();
}

TEST_CASE_FIXTURE(RendezvousTest, "a stop asked for at any node stops all") {
  TestNode& a = add(2, 2, "node-a");
  TestNode& b = add(2, 2, "node-b");
  run_both(a, b);
  CHECK((a.link->hosting() ? b : a).link->request_stop(kSigterm, false));
  wait_end(a);
  wait_end(b);
  CHECK(a.stop->reason == StopReason::kSignal);
  CHECK(b.stop->signal == SIGTERM);
  CHECK(a.end->exit_code == 128 + SIGTERM);
  CHECK(b.end->exit_code == 128 + SIGTERM);
  part();
}

TEST_CASE_FIXTURE(RendezvousTest, "one node too many is a spare and takes a lost one's place") {
  TestNode& a = add(2, 2, "node-a");
  a.link->join();
  wait([&] { return a.link->hosting(); });
  TestNode& b = add(2, 2, "node-b");
  b.link->join();
  wait_running(b);
  TestNode& c = add(2, 2, "node-c");
  c.link->join();
  wait([&] { return c.said("spare"); });
  CHECK(!c.running);
  b.link.reset();
  wait_running(c);
  CHECK(c.assignment->attempt == 1);
  CHECK(c.assignment->restart_count == 0);
  wait([&] { return a.attempt() == 1; });
  nodes.erase(nodes.begin() + 1);
  complete_and_part();
}

TEST_CASE_FIXTURE(RendezvousTest, "a spare that was not needed goes home with 0") {
  TestNode& a = add(1, 1 + 1, "node-a");
  a.link->join();
  wait_running(a);
  TestNode& b = add(1, 2, "node-b");
  b.link->join();
  wait([&] { return a.attempt() >= 0 && b.attempt() == a.attempt(); });
  TestNode& c = add(1, 2, "node-c");
  c.link->join();
  wait([&] { return c.said("spare"); });
  a.settle(true);
  b.settle(true);
  wait_end(c);
  CHECK(c.end->exit_code == 0);
  complete_and_part();
}

TEST_CASE_FIXTURE(RendezvousTest, "a connection that breaks is resumed and nobody stops") {
  Relay relay(loop, port);
  TestNode& a = add(2, 2, "node-a");
  TestNode& b = add(plan_through(relay, 2, 2, "node-b"));
  run_both(a, b);
  relay.cut_agents();
  wait([&] { return b.said(" is back"); });
  CHECK(a.calls == std::vector<std::string>{"assignment"});
  CHECK(b.calls == std::vector<std::string>{"assignment"});
  // What is said while it is broken arrives nevertheless.
  relay.cut_agents();
  a.settle(true);
  b.settle(true);
  wait_end(b);
  CHECK(b.end->exit_code == 0);
  complete_and_part();
}

TEST_CASE_FIXTURE(RendezvousTest,
                  "a coordinator that is gone stops the workers and ends the node") {
  Relay relay(loop, port);
  TestNode& a = add(2, 2, "node-a");
  TestNode& b = add(plan_through(relay, 2, 2, "node-b"));
  b.stops_at_once = false;
  a.link->join();
  b.link->join();
  wait_running(b);
  SUBCASE("while workers run") {
    relay.refuse();
    wait([&] { return b.stop.has_value(); });
    CHECK(b.stop->reason == StopReason::kCoordinatorLost);
    CHECK(b.stop->why.find("connection refused") != std::string::npos);
    CHECK(!b.end);
    CHECK(!b.link->request_stop(kSigterm, false));
    b.settle(false);
    CHECK(!b.end);
  }
  SUBCASE("when they are gone already") {
    b.settle(true);
    relay.refuse();
  }
  wait_end(b);
  CHECK(b.end->outcome == Outcome::kFailed);
  CHECK(b.end->exit_code == 1);
  CHECK(b.end->why.starts_with("lost the coordinator at 127.0.0.1:"));
  CHECK(b.end->kind == "coordinator_lost");
  nodes.erase(nodes.begin());
  part();
}

TEST_CASE_FIXTURE(RendezvousTest, "a silent network stops the workers on both sides") {
  Relay relay(loop, port);
  TestNode& a = add(2, 2, "node-a");
  TestNode& b = add(plan_through(relay, 2, 2, "node-b"));
  run_both(a, b);
  relay.freeze();
  wait([&] { return a.stop && b.stop; });
  CHECK(a.stop->reason == StopReason::kMembership);
  CHECK(b.stop->reason == StopReason::kCoordinatorLost);
  const event::NodeLost* lost = nullptr;
  wait([&] { return (lost = a.recorded<event::NodeLost>()) != nullptr; });
  CHECK(lost->host == "node-b");
  CHECK(lost->how == "silent");
  wait_end(b);
  CHECK(b.end->exit_code == 1);
  CHECK(!a.end);  // it waits for a replacement

  TestNode& c = add(2, 2, "node-c");
  c.link->join();
  wait_running(c);
  wait_running(a);
  CHECK(a.assignment->attempt == 1);
  nodes.erase(nodes.begin() + 1);
  complete_and_part();
}

TEST_CASE_FIXTURE(RendezvousTest, "a node that was given up comes back and runs with the others") {
  Relay relay(loop, port);
  TestNode& a = add(2, 2, "node-a");
  LaunchPlan plan = plan_through(relay, 2, 2, "node-b");
  TestNode& b = add(plan);
  run_both(a, b);
  b.stops_at_once = false;
  relay.freeze();
  wait([&] { return a.recorded<event::NodeLost>() != nullptr; });
  relay.cut();
  relay.thaw();
  wait([&] { return b.stop.has_value(); });
  // Its place in the next attempt waits until its workers are gone.
  CHECK(b.running);
  b.settle(false);
  wait([&] { return a.attempt() == 1 && b.attempt() == 1; });
  CHECK(a.assignment->restart_count == 0);
  complete_and_part();
}

TEST_CASE_FIXTURE(RendezvousTest,
                  "what happens to a node's workers is recorded at the coordinator") {
  TestNode& a = add(2, 2, "node-a");
  a.link->join();
  wait([&] { return a.link->hosting(); });
  TestNode& b = add(2, 2, "node-b");
  b.link->join();
  wait_running(b);
  Event event;
  event::WorkerSpawned spawned;
  spawned.rank = 1;
  spawned.pid = 4711;
  event.body = spawned;
  b.link->report(event);
  wait([&] { return a.recorded<event::WorkerSpawned>() != nullptr; });
  CHECK(a.recorded<event::WorkerSpawned>()->pid == 4711);
  CHECK(a.recorded<event::NodeJoined>() != nullptr);
  complete_and_part();
}

TEST_CASE_FIXTURE(RendezvousTest, "who waits for more nodes knows for whom, host and guest") {
  TestNode& a = add(3, 3, "node-a");
  a.link->join();
  wait([&] { return a.link->hosting(); });
  TestNode& b = add(3, 3, "node-b");
  b.link->join();
  auto knows = [](const TestNode& node) {
    return std::any_of(node.records.begin(), node.records.end(), [](const EventBody& body) {
      auto* awaited = std::get_if<event::NodesAwaited>(&body);
      return awaited != nullptr && awaited->have == 2;
    });
  };
  wait([&] { return knows(a) && knows(b); });
}

TEST_CASE_FIXTURE(RendezvousTest, "a node that leaves is gone at once, the job goes on") {
  TestNode& a = add(1, 2, "node-a");
  a.link->join();
  wait([&] { return a.link->hosting(); });
  TestNode& b = add(1, 2, "node-b");
  b.link->join();
  wait([&] { return b.attempt() >= 0 && a.attempt() == b.attempt(); });
  b.link->leave();
  b.running = false;
  b.close();
  wait([&] { return b.closed; });
  CHECK(!b.stop);
  CHECK(!b.end);
  wait([&] { return a.running && a.assignment->node_count == 1 && a.attempt() > 0; });
  nodes.erase(nodes.begin() + 1);
  complete_and_part();
}

TEST_CASE_FIXTURE(RendezvousTest, "a host that leaves stops the job and stays until all are home") {
  TestNode& a = add(1, 2, "node-a");
  a.link->join();
  wait([&] { return a.link->hosting(); });
  TestNode& b = add(1, 2, "node-b");
  b.stops_at_once = false;
  b.link->join();
  wait([&] { return b.attempt() >= 0 && a.attempt() == b.attempt(); });
  a.link->leave();
  a.running = false;
  wait([&] { return b.stop.has_value(); });
  CHECK(b.stop->reason == StopReason::kSignal);
  CHECK(b.stop->why.find("leaves the job") != std::string::npos);
  a.close();
  b.settle(false);
  wait_end(b);
  CHECK(b.end->outcome == Outcome::kStopped);
  CHECK(!a.closed);
  CHECK(!a.stop);
  b.close();
  wait([&] { return a.closed && b.closed; });
  CHECK(!a.end);
}

TEST_CASE_FIXTURE(RendezvousTest, "a search is over as soon as it is closed") {
  LaunchPlan plan = plan_of(2, 2, port, "node-b");
  plan.rendezvous.is_host = false;
  ScriptedPeer silent(loop);
  plan.rendezvous.endpoint_port = silent.port();
  TestNode& b = add(plan);
  b.link->join();
  wait([&] { return silent.count<message::Hello>() == 1; });
  b.link->leave();
  b.close();
  CHECK(!b.closed);
  wait([&] { return b.closed; });
  wait([&] { return silent.ended(); });
  CHECK(b.calls.empty());
}

TEST_CASE_FIXTURE(RendezvousTest, "workers reach the store at the port where the agents meet") {
  TestNode& a = add(2, 2, "node-a");
  a.link->join();
  wait([&] { return a.link->hosting(); });
  REQUIRE(a.link->store() != nullptr);
  CHECK(a.link->store()->port() == port);
  // A store client's first query: validate, with PyTorch's magic number, then a ping.
  TestPeer worker(loop, port);
  const std::string pinged = worker.ask(
      std::string("\x00\xce\xf7\x85\x3c", 5) + std::string("\x0d\x07\x00\x00\x00", 5), 4);
  CHECK(pinged == std::string("\x07\x00\x00\x00", 4));
}

}  // namespace muster
