// SPDX-License-Identifier: Apache-2.0
// A browser at the coordinator's node and the HTTP handler of another, with everything between them
// as it is: sockets, the server, two nodes' rendezvous.
#include <doctest/doctest.h>

#include "loop/http_server.h"
#include "loop/loop_test.h"
#include "rendezvous/relay.h"
#include "rendezvous/scripted_peer.h"
#include "rendezvous/test_node.h"
#include "store/test_peer.h"
#include "supervisor/rendezvous/request_desk.h"

namespace muster {

namespace {

// Writes a long text of which every part is known, no faster than it is taken.
struct LongAnswer {
  LongAnswer(std::unique_ptr<HttpExchange> the_exchange, size_t the_size)
      : exchange(std::move(the_exchange)), size(the_size) {
    exchange->set_callbacks({[this] { go_on(); }, [this] { gone = true; }});
    exchange->begin(200, {{"content-type", "text/plain"}}, static_cast<int64_t>(size));
    go_on();
  }
  void go_on() {
    while (written < size && exchange->unsent() == 0) {
      const std::string part = text(written, std::min(size - written, size_t{100'000}));
      exchange->write(part);
      written += part.size();
    }
    if (written == size && !finished) {
      finished = true;
      exchange->finish();
    }
  }
  static std::string text(size_t from, size_t count) {
    std::string bytes(count, ' ');
    for (size_t i = 0; i < count; ++i)
      bytes[i] = static_cast<char>('a' + (from + i) % 23);
    return bytes;
  }
  std::unique_ptr<HttpExchange> exchange;
  const size_t size;
  size_t written = 0;
  bool finished = false;
  bool gone = false;
};

struct ForwardingTest : LoopTest {
  const int port = ScriptedPeer(loop).port();  // nobody's
  Relay relay{loop, port};
  std::unique_ptr<TestNode> a, b;
  std::unique_ptr<HttpServer> server;
  int attempt = -1;
  std::vector<std::unique_ptr<HttpExchange>> asked;  // of b
  std::vector<std::unique_ptr<LongAnswer>> answers;
  int refused = 0;

  ForwardingTest() {
    LaunchPlan plan = plan_of(2, 2, port, "node-a");
    // Both nodes, a browser and all the bytes between them are in this one process; on a busy
    // machine it does not run for some time.
    plan.rendezvous.keep_alive_interval = Milliseconds(500);
    a = std::make_unique<TestNode>(loop, plan);
    plan = plan_of(2, 2, relay.port(), "node-b");
    plan.rendezvous.is_host = false;
    b = std::make_unique<TestNode>(loop, plan, 2);
    b->on_request = [this](std::unique_ptr<HttpExchange> exchange) {
      asked.push_back(std::move(exchange));
    };
    a->link->join();
    b->link->join();
    REQUIRE(run_until([&] { return a->running && b->running; }));
    auto listening =
        HttpServer::listen(loop, "127.0.0.1", 0, [this](std::unique_ptr<HttpExchange> exchange) {
          if (a->link->forward(attempt, b->assignment->node, exchange)) return;
          ++refused;
          exchange->reply(404, {}, "");
        });
    REQUIRE(listening);
    server = std::move(*listening);
  }

  std::unique_ptr<TestPeer> browser(const std::string& request_line = "GET /log HTTP/1.1",
                                    const std::string& headers = "") {
    auto peer = std::make_unique<TestPeer>(loop, server->port());
    peer->send(request_line + "\r\nHost: x\r\n" + headers + "\r\n");
    return peer;
  }
  HttpExchange& wait_asked(size_t count = 1) {
    REQUIRE(run_until([&] { return asked.size() >= count; }));
    return *asked.back();
  }
  void answer_at_length(size_t size) {
    b->on_request = [this, size](std::unique_ptr<HttpExchange> exchange) {
      answers.push_back(std::make_unique<LongAnswer>(std::move(exchange), size));
    };
  }
  static std::string head(TestPeer& peer) {
    std::string got;
    while (!got.ends_with("\r\n\r\n")) {
      const std::string byte = peer.receive(1);
      REQUIRE(!byte.empty());
      got += byte;
    }
    return got;
  }
};

}  // namespace

TEST_CASE_FIXTURE(ForwardingTest, "a request is answered by the node it is for") {
  auto peer = browser("GET /log/1?token=secret&q=a%20b HTTP/1.1",
                      "Range: bytes=0-4\r\nCookie: muster=secret\r\n");
  HttpExchange& exchange = wait_asked();
  const HttpServerRequest& request = exchange.request();
  CHECK(request.method == "GET");
  CHECK(request.path == "/log/1");
  CHECK(request.parameter("q") == "a b");
  CHECK_FALSE(request.parameter("token"));
  CHECK(request.header("range") == "bytes=0-4");
  CHECK_FALSE(request.header("cookie"));
  exchange.reply(206, {{"content-range", "bytes 0-4/9"}}, "hello");
  const std::string got = head(*peer);
  CHECK(got.starts_with("HTTP/1.1 206"));
  CHECK(got.find("content-range: bytes 0-4/9\r\n") != std::string::npos);
  CHECK(peer->receive(5) == "hello");
}

TEST_CASE_FIXTURE(ForwardingTest, "a long answer comes whole and in its order") {
  constexpr size_t kSize = size_t{20} << 20;
  answer_at_length(kSize);
  auto peer = browser();
  CHECK(head(*peer).find(std::to_string(kSize)) != std::string::npos);
  const bool whole = peer->receive(kSize) == LongAnswer::text(0, kSize);
  CHECK(whole);
  CHECK(answers[0]->finished);
}

TEST_CASE_FIXTURE(ForwardingTest, "a browser that stalls stops its writer, and nobody else") {
  constexpr size_t kSize = size_t{256} << 20;
  answer_at_length(kSize);
  auto stalled = browser();
  REQUIRE(run_until([&] { return !answers.empty(); }));
  // Others are answered meanwhile, again and again, and the node is not lost.
  b->on_request = [](std::unique_ptr<HttpExchange> exchange) { exchange->reply(200, {}, "quick"); };
  size_t before = SIZE_MAX;
  int rounds = 0;
  while (answers[0]->written != before || rounds < 50) {
    before = answers[0]->written;
    auto other = browser();
    head(*other);
    REQUIRE(other->receive(5) == "quick");
    REQUIRE(++rounds < 2'000);
  }
  CHECK(answers[0]->exchange->unsent() > 0);
  // What the kernel holds for the browser, what is under way, what the handler wrote last.
  CHECK(answers[0]->written < (size_t{32} << 20));
  CHECK(a->recorded<event::NodeLost>() == nullptr);
  CHECK_FALSE(answers[0]->gone);
  head(*stalled);
  const std::string got = stalled->receive(size_t{40} << 20);
  CHECK(got.size() == size_t{40} << 20);
  const bool in_order = got == LongAnswer::text(0, got.size());
  CHECK(in_order);
  CHECK(a->recorded<event::NodeLost>() == nullptr);
}

TEST_CASE_FIXTURE(ForwardingTest, "a browser that goes away takes its request along") {
  answer_at_length(size_t{256} << 20);
  auto peer = browser();
  head(*peer);
  peer->leave();
  CHECK(run_until([&] { return answers[0]->gone; }));
}

TEST_CASE_FIXTURE(ForwardingTest, "a node that is lost in the middle cuts its answers visibly") {
  auto begun = browser("GET /1 HTTP/1.1");
  wait_asked().begin(200, {}, 100);
  asked.back()->write("half");
  auto waiting = browser("GET /2 HTTP/1.1");
  wait_asked(2);
  head(*begun);
  CHECK(begun->receive(4) == "half");
  b->link.reset();
  const std::string got = head(*waiting);
  CHECK(got.starts_with("HTTP/1.1 502"));
  CHECK(begun->closed());
  CHECK(run_until([&] { return a->recorded<event::NodeLost>() != nullptr; }));
  auto late = browser();
  CHECK(head(*late).starts_with("HTTP/1.1 404"));
  CHECK(refused == 1);
}

TEST_CASE_FIXTURE(ForwardingTest,
                  "after a break the old answers are over, and new ones are given") {
  auto peer = browser();
  bool gone = false;
  wait_asked().set_callbacks({{}, [&] { gone = true; }});
  relay.cut();
  REQUIRE(run_until([&] { return gone; }));
  CHECK(head(*peer).starts_with("HTTP/1.1 502"));
  asked.clear();
  REQUIRE(run_until([&] { return b->said("is back"); }));
  auto next = browser();
  wait_asked().reply(200, {}, "again");
  head(*next);
  CHECK(next->receive(5) == "again");
}

TEST_CASE_FIXTURE(ForwardingTest, "the end of the coordinator ends what it asked for") {
  auto peer = browser();
  bool gone = false;
  wait_asked().set_callbacks({{}, [&] { gone = true; }});
  server.reset();
  a.reset();
  CHECK(run_until([&] { return gone; }));
}

TEST_CASE_FIXTURE(ForwardingTest, "a handler that gives up is told as it is") {
  auto unanswered = browser("GET /1 HTTP/1.1");
  wait_asked();
  asked.clear();
  CHECK(head(*unanswered).starts_with("HTTP/1.1 502"));
  auto begun = browser("GET /2 HTTP/1.1");
  wait_asked().begin(200, {}, -1);
  asked.back()->write("half");
  head(*begun);
  asked.clear();
  CHECK(begun->closed());
}

TEST_CASE_FIXTURE(ForwardingTest, "too many requests at one node are refused, and only those") {
  std::vector<std::unique_ptr<TestPeer>> peers;
  for (size_t i = 0; i < kMaxOpenRequests; ++i)
    peers.push_back(browser());
  wait_asked(kMaxOpenRequests);
  auto one_more = browser();
  CHECK(head(*one_more).starts_with("HTTP/1.1 503"));
  asked.back()->reply(200, {}, "");
  auto admitted = browser();
  wait_asked(kMaxOpenRequests + 1);
}

TEST_CASE_FIXTURE(ForwardingTest, "a HEAD has the head alone") {
  answer_at_length(size_t{256} << 20);
  auto peer = browser("HEAD /log HTTP/1.1");
  CHECK(head(*peer).find(std::to_string(size_t{256} << 20)) != std::string::npos);
  CHECK(run_until([&] { return answers[0]->gone; }));
}

TEST_CASE_FIXTURE(ForwardingTest, "nothing is changed on another node") {
  auto peer = browser("POST /api/v1/stop HTTP/1.1", "Content-Length: 0\r\n");
  CHECK(head(*peer).starts_with("HTTP/1.1 405"));
  CHECK(asked.empty());
}

TEST_CASE_FIXTURE(ForwardingTest, "a node is found by its part in an older attempt") {
  CHECK(b->link->request_restart("alice") == "");
  REQUIRE(run_until([&] { return a->attempt() == 1 && b->attempt() == 1; }));
  for (int which : {0, 1, -1}) {
    attempt = which;
    asked.clear();
    auto peer = browser();
    wait_asked().reply(200, {}, "");
    CHECK(head(*peer).starts_with("HTTP/1.1 200"));
  }
  attempt = 2;
  auto peer = browser();
  CHECK(head(*peer).starts_with("HTTP/1.1 404"));
}

TEST_CASE_FIXTURE(ForwardingTest, "a restart can be asked for at any node") {
  CHECK(b->link->request_restart("HTTP from 127.0.0.1") == "");
  REQUIRE(run_until([&] { return a->attempt() == 1 && b->attempt() == 1; }));
  CHECK(b->stop->reason == StopReason::kRestart);
  CHECK(b->stop->why == "restarting: asked for by HTTP from 127.0.0.1 on node-b");
  CHECK(b->assignment->restart_count == 0);
  const auto* recorded = a->recorded<event::RestartRequested>();
  REQUIRE(recorded != nullptr);
  CHECK(recorded->host == "node-b");
  CHECK(a->link->request_restart("alice") == "");
  REQUIRE(run_until([&] { return a->attempt() == 2 && b->attempt() == 2; }));
}

TEST_CASE_FIXTURE(ForwardingTest, "a restart that cannot be is refused, also from afar") {
  a->stops_at_once = b->stops_at_once = false;
  event::SignalReceived signal;
  signal.signal = 15;
  REQUIRE(a->link->request_stop(signal, false));
  CHECK(a->link->request_restart("alice") == "the workers are being stopped already");
  CHECK(b->link->request_restart("alice") == "");
  CHECK(run_until([&] { return b->said("no restart: the workers are being stopped already"); }));
}

TEST_CASE_FIXTURE(ForwardingTest, "evidence of all nodes can be asked for at any of them") {
  CHECK(b->link->request_evidence("asked by HTTP from 127.0.0.1") == "");
  REQUIRE(run_until([&] { return !a->evidence.empty() && !b->evidence.empty(); }));
  CHECK(a->evidence.front() == "asked by HTTP from 127.0.0.1");
  CHECK(b->evidence.front() == "asked by HTTP from 127.0.0.1");
  CHECK(a->link->request_evidence("stalled") == "");
  REQUIRE(run_until([&] { return a->evidence.size() == 2 && b->evidence.size() == 2; }));
  Event event;
  event::EvidenceSaved saved{0, "liar", "stalled", "/logs/stacks_0", {"rank 1: wait"}, ""};
  event.body = saved;
  b->link->report(event);
  REQUIRE(run_until([&] { return a->recorded<event::EvidenceSaved>() != nullptr; }));
  CHECK(a->recorded<event::EvidenceSaved>()->host == "node-b");
  CHECK(a->recorded<event::EvidenceSaved>()->groups == saved.groups);
}

TEST_CASE_FIXTURE(ForwardingTest, "without workers there is no evidence to ask for") {
  a->settle(true);
  b->settle(true);
  REQUIRE(run_until([&] { return a->end && b->end; }));
  CHECK(a->link->request_evidence("asked") == "no worker runs");
}

TEST_CASE_FIXTURE(ForwardingTest,
                  "samples of another node's ranks are heard where somebody looks") {
  for (int rank : {b->assignment->first_rank, b->assignment->first_rank + 1, 7}) {
    RankSample sample;
    sample.rank = rank;
    sample.time_us = 1'000'000'000;
    sample.cpu = 1.5;
    b->samples.push_back(sample);
  }
  a->link->watch_samples();
  REQUIRE(run_until([&] { return a->heard.size() >= 4; }));
  CHECK(a->heard[0].first == 0);
  CHECK(a->heard[0].second.rank == b->assignment->first_rank);
  CHECK(a->heard[0].second.cpu == doctest::Approx(1.5));
  for (const auto& [of_attempt, sample] : a->heard)
    CHECK(sample.rank != 7);
}

}  // namespace muster
