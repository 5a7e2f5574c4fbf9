// SPDX-License-Identifier: Apache-2.0
// Agents and coordinators that do with requests and samples what they never should.
#include <doctest/doctest.h>

#include "loop/http_server.h"
#include "loop/loop_test.h"
#include "rendezvous/scripted_peer.h"
#include "rendezvous/test_agent.h"
#include "rendezvous/test_node.h"
#include "store/test_peer.h"
#include "supervisor/rendezvous/request_desk.h"

namespace muster {

namespace {

// A real coordinator with a browser, and an agent by hand.
struct HostileAgentTest : LoopTest {
  const int port = ScriptedPeer(loop).port();  // nobody's
  std::unique_ptr<TestNode> host;
  std::unique_ptr<TestAgent> agent;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<TestPeer> browser;
  Assignment part;

  void start(Milliseconds keep_alive = Milliseconds(1'000)) {
    LaunchPlan plan = plan_of(2, 2, port, "node-a");
    plan.rendezvous.keep_alive_interval = keep_alive;
    host = std::make_unique<TestNode>(loop, plan, 1, facts_of("b").terms.max_restarts);
    host->link->join();
    REQUIRE(run_until([&] { return host->recorded<event::NodeJoined>() != nullptr; }));
    agent = std::make_unique<TestAgent>(loop, port);
    agent->join(facts_of("b"), "run-1");
    part = agent->hear_a<Assignment>();
    REQUIRE(run_until([&] { return host->running; }));
  }

  // What the agent is asked when a browser looks at it.
  message::Request ask() {
    auto listening =
        HttpServer::listen(loop, "127.0.0.1", 0, [this](std::unique_ptr<HttpExchange> exchange) {
          REQUIRE(host->link->forward(-1, part.node, exchange));
        });
    REQUIRE(listening);
    server = std::move(*listening);
    browser = std::make_unique<TestPeer>(loop, server->port());
    browser->send("GET /log HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return agent->hear_a<message::Request>();
  }
};

// An agent's real end, and a coordinator by hand.
struct HostileHostTest : LoopTest {
  ScriptedPeer peer{loop};
  std::unique_ptr<TestNode> node;
  std::vector<std::unique_ptr<HttpExchange>> asked;

  HostileHostTest() {
    peer.be_a_coordinator({false, true, 1'000, 3});
    LaunchPlan plan = plan_of(2, 2, peer.port(), "node-b");
    plan.rendezvous.is_host = false;
    node = std::make_unique<TestNode>(loop, plan);
    node->on_request = [this](std::unique_ptr<HttpExchange> exchange) {
      asked.push_back(std::move(exchange));
    };
    node->link->join();
    REQUIRE(run_until([&] { return peer.count<message::Heartbeat>() > 0; }));
  }

  void ask(int64_t id, int64_t credit = 0) { peer.send(message::Request{id, "/log", {}, credit}); }
};

}  // namespace

TEST_CASE_FIXTURE(HostileAgentTest, "an agent that answers what it was not asked is closed") {
  start();
  const message::Request request = ask();
  SUBCASE("another request") {
    agent->say(message::Answer{request.id + 1, 200, {}, -1});
  }
  SUBCASE("twice") {
    agent->say(message::Answer{request.id, 200, {}, -1});
    agent->say(message::Answer{request.id, 200, {}, -1});
  }
  SUBCASE("without a head") {
    agent->say(message::Piece{request.id, "x"});
  }
  CHECK(agent->closed());
  CHECK(run_until([&] { return host->recorded<event::NodeLost>() != nullptr; }));
  CHECK(host->recorded<event::NodeLost>()->how == "closed");
  CHECK(browser->closed());
}

TEST_CASE_FIXTURE(HostileAgentTest, "an agent may still answer what was cancelled") {
  start();
  const message::Request request = ask();
  agent->say(message::Answer{request.id, 200, {}, -1});
  agent->say(message::Piece{request.id, std::string(1'000, 'x')});
  server.reset();
  CHECK(agent->hear_a<message::Cancel>().id == request.id);
  agent->say(message::Piece{request.id, std::string(1'000, 'x')});
  agent->say(message::AnswerEnd{request.id});
  agent->say(message::Heartbeat{unix_us(), 0});
  agent->hear_a<message::HeartbeatEcho>();
  CHECK(host->recorded<event::NodeLost>() == nullptr);
}

TEST_CASE_FIXTURE(HostileAgentTest, "samples are no sign of life, and are of the sender's ranks") {
  start(Milliseconds(100));
  RankSample own, foreign;
  own.rank = part.first_rank;
  own.time_us = foreign.time_us = 5'000'000'000;
  own.last_output_us = 4'000'000'000;
  foreign.rank = part.first_rank + 1;
  agent->say(message::Heartbeat{unix_us(), 60'000'000});  // its clock is a minute behind
  agent->hear_a<message::HeartbeatEcho>();
  bool gone = false;
  Owned<Timer> tick = Timer::repeat(loop, Milliseconds(20), [&] {
    if (!gone) agent->say(message::Samples{part.attempt, {own, foreign}});
  });
  REQUIRE(run_until([&] { return gone = host->recorded<event::NodeLost>() != nullptr; }));
  CHECK(host->recorded<event::NodeLost>()->how == "silent");
  REQUIRE(!host->heard.empty());
  for (const auto& [attempt, sample] : host->heard) {
    CHECK(attempt == part.attempt);
    CHECK(sample.rank == own.rank);
    CHECK(sample.time_us == own.time_us + 60'000'000);
    CHECK(sample.last_output_us == own.last_output_us + 60'000'000);
  }
}

TEST_CASE_FIXTURE(HostileHostTest,
                  "a coordinator that breaks the rules of requests loses its agent") {
  SUBCASE("an id again") {
    ask(1);
    ask(1);
  }
  SUBCASE("too many") {
    for (int64_t id = 1; id <= int64_t{kMaxOpenRequests} + 1; ++id)
      ask(id);
  }
  SUBCASE("credit for what it never asked") {
    peer.send(message::Credit{7, 1});
  }
  bool gone = false;
  REQUIRE(run_until([&] { return peer.ended() || peer.connections() > 1; }));
  // What was open is over, and the agent comes back.
  for (auto& exchange : asked)
    exchange->set_callbacks({{}, [&] { gone = true; }});
  CHECK(run_until([&] { return node->said("is back"); }));
  asked.clear();
  ask(1, 1'000);
  REQUIRE(run_until([&] { return !asked.empty(); }));
  asked.back()->reply(200, {}, "hello");
  CHECK(run_until([&] { return peer.count<message::AnswerEnd>() == 1; }));
}

TEST_CASE_FIXTURE(HostileHostTest,
                  "heartbeats go on while a coordinator reads slowly what it asked for") {
  ask(1, int64_t{64} << 20);
  REQUIRE(run_until([&] { return !asked.empty(); }));
  peer.set_reading(false);
  HttpExchange& exchange = *asked.back();
  exchange.begin(200, {}, -1);
  // Far more than the kernel takes: the rest waits here, not in the connection.
  for (int i = 0; i < 12; ++i)
    exchange.write(std::string(size_t{1} << 20, 'x'));
  CHECK(exchange.unsent() > (size_t{1} << 20));
  const int beats = peer.count<message::Heartbeat>();
  peer.set_reading(true);
  REQUIRE(run_until([&] { return peer.count<message::Heartbeat>() > beats; }));
  CHECK(run_until([&] { return exchange.unsent() == 0; }));
}

}  // namespace muster
