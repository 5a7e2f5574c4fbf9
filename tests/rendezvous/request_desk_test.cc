// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/request_desk.h"

#include <doctest/doctest.h>

#include <deque>

#include "loop/loop_test.h"

namespace muster {

namespace {

// A desk whose connection takes as much as the test wants.
struct DeskTest : LoopTest {
  std::deque<AgentMessage> sent;
  size_t unsent = 0;
  std::vector<std::unique_ptr<HttpExchange>> exchanges;
  std::unique_ptr<RequestDesk> desk = std::make_unique<RequestDesk>(
      loop,
      RequestDesk::Wire{[this](AgentMessage message) { sent.push_back(std::move(message)); },
                        [this] { return unsent; }},
      [this](std::unique_ptr<HttpExchange> exchange) { exchanges.push_back(std::move(exchange)); });

  HttpExchange& ask(int64_t id, int64_t credit = 100'000) {
    message::Request request;
    request.id = id;
    request.target = "/log?tail=1";
    request.credit = credit;
    REQUIRE(desk->take(std::move(request)) == nullptr);
    REQUIRE(!exchanges.empty());
    return *exchanges.back();
  }

  // The body bytes of an answer that were sent since the last call.
  std::string body(int64_t id) {
    std::string bytes;
    for (const AgentMessage& message : sent) {
      auto* piece = std::get_if<message::Piece>(&message);
      if (piece != nullptr && piece->id == id) bytes += piece->bytes;
    }
    sent.clear();
    return bytes;
  }
  template <typename T>
  const T* last() const {
    return sent.empty() ? nullptr : std::get_if<T>(&sent.back());
  }
};

}  // namespace

TEST_CASE_FIXTURE(DeskTest, "an answer is a head, pieces and an end") {
  HttpExchange& exchange = ask(1);
  CHECK(exchange.request().path == "/log");
  CHECK(exchange.request().parameter("tail") == "1");
  exchange.reply(206, {{"content-type", "text/plain"}, {"set-cookie", "a=b"}}, "hello");
  REQUIRE(sent.size() == 3);
  const auto& head = std::get<message::Answer>(sent[0]);
  CHECK(head.id == 1);
  CHECK(head.status == 206);
  CHECK(head.headers == HttpHeaders{{"content-type", "text/plain"}});
  CHECK(head.length == 5);
  CHECK(std::get<message::Piece>(sent[1]).bytes == "hello");
  CHECK(std::get<message::AnswerEnd>(sent[2]).id == 1);
  CHECK(desk->open() == 0);
  exchange.write("more");
  exchange.finish();
  CHECK(sent.size() == 3);
}

TEST_CASE_FIXTURE(DeskTest,
                  "no more goes out than there is credit for, and the rest when it comes") {
  HttpExchange& exchange = ask(1, 10);
  bool drained = false;
  exchange.set_callbacks({[&] { drained = true; }, {}});
  exchange.begin(200, {}, -1);
  exchange.write("0123456789abcdef");
  CHECK(body(1) == "0123456789");
  CHECK(exchange.unsent() == 6);
  CHECK(desk->take(message::Credit{1, 4}) == nullptr);
  CHECK(body(1) == "abcd");
  exchange.finish();
  CHECK(sent.empty());  // the end comes after the last byte
  CHECK(desk->take(message::Credit{1, 4}) == nullptr);
  CHECK(last<message::AnswerEnd>() != nullptr);
  CHECK(body(1) == "ef");
  CHECK_FALSE(drained);  // never inside a call
  exchanges.clear();
}

TEST_CASE_FIXTURE(DeskTest, "whoever waits is told when all has gone") {
  HttpExchange& exchange = ask(1, 3);
  int drained = 0;
  exchange.set_callbacks({[&] { ++drained; }, {}});
  exchange.begin(200, {}, -1);
  exchange.write("abc");
  exchange.write("d");
  desk->take(message::Credit{1, 100});
  REQUIRE(run_until([&] { return drained == 1; }));
  exchange.write("goes at once");
  loop.run_until([] { return false; }, Milliseconds(1));
  CHECK(drained == 1);
}

TEST_CASE_FIXTURE(DeskTest, "pieces are bounded, and all answers get their turn") {
  HttpExchange& a = ask(1, 1 << 20);
  HttpExchange& b = ask(2, 1 << 20);
  unsent = size_t{1} << 20;  // the connection takes nothing
  for (HttpExchange* exchange : {&a, &b}) {
    exchange->begin(200, {}, -1);
    exchange->write(std::string(3 * kMaxPiece, 'x'));
  }
  sent.clear();
  unsent = 0;
  desk->go_on();
  REQUIRE(sent.size() == 6);
  for (size_t i = 0; i < 6; ++i) {
    const auto& piece = std::get<message::Piece>(sent[i]);
    CHECK(piece.bytes.size() == kMaxPiece);
    CHECK(piece.id == (i % 2 == 0 ? 1 : 2));
  }
}

TEST_CASE_FIXTURE(DeskTest, "while the connection has much to send, answers wait") {
  HttpExchange& exchange = ask(1, 1 << 20);
  exchange.begin(200, {}, -1);
  unsent = size_t{1} << 20;
  sent.clear();
  exchange.write("later");
  CHECK(sent.empty());
  unsent = 0;
  desk->go_on();
  CHECK(body(1) == "later");
}

TEST_CASE_FIXTURE(DeskTest,
                  "a handler that writes without waiting loses its answer, nobody else's") {
  HttpExchange& exchange = ask(1, 10);
  bool gone = false;
  exchange.set_callbacks({{}, [&] { gone = true; }});
  exchange.begin(200, {}, -1);
  const std::string much(kMaxHeldAnswer / 4, 'x');
  for (int i = 0; i < 4; ++i)
    exchange.write(much);
  CHECK(last<message::AnswerBroken>() == nullptr);
  exchange.write(much);
  CHECK(last<message::AnswerBroken>() != nullptr);
  CHECK(desk->open() == 0);
  CHECK(run_until([&] { return gone; }));
}

TEST_CASE_FIXTURE(DeskTest, "an exchange that is dropped breaks its answer off") {
  ask(1).begin(200, {}, 100);
  exchanges.clear();
  CHECK(last<message::AnswerBroken>() != nullptr);
  ask(2);
  exchanges.clear();
  CHECK(std::get<message::AnswerBroken>(sent.back()).id == 2);
}

TEST_CASE_FIXTURE(DeskTest, "a finished answer goes out although its exchange is dropped") {
  ask(1, 2).reply(200, {}, "abcd");
  exchanges.clear();
  desk->take(message::Credit{1, 2});
  CHECK(last<message::AnswerEnd>() != nullptr);
  CHECK(body(1) == "abcd");
}

TEST_CASE_FIXTURE(DeskTest, "a cancelled request is told to its handler, once, from the loop") {
  int gone = 0;
  HttpExchange& exchange = ask(1);
  exchange.set_callbacks({{}, [&] {
                            ++gone;
                            exchanges.clear();
                          }});
  desk->take(message::Cancel{1});
  CHECK(gone == 0);
  CHECK(desk->open() == 0);
  exchange.begin(200, {}, -1);
  CHECK(sent.empty());
  desk->take(message::Cancel{1});
  CHECK(run_until([&] { return gone == 1; }));
  CHECK(sent.empty());
}

TEST_CASE_FIXTURE(DeskTest, "a handler that let go hears nothing more") {
  bool called = false;
  ask(1, 0).set_callbacks({[&] { called = true; }, [&] { called = true; }});
  desk->take(message::Cancel{1});
  exchanges.clear();
  loop.run_until([] { return false; }, Milliseconds(1));
  CHECK_FALSE(called);
}

TEST_CASE_FIXTURE(DeskTest, "when the connection goes every handler is told, and ids begin anew") {
  int gone = 0;
  for (int64_t id : {5, 6})
    ask(id).set_callbacks({{}, [&] { ++gone; }});
  desk->hang_up();
  CHECK(run_until([&] { return gone == 2; }));
  CHECK(desk->open() == 0);
  ask(1).reply(200, {}, "");
  CHECK(last<message::AnswerEnd>() != nullptr);
}

TEST_CASE_FIXTURE(DeskTest, "an exchange may outlive the desk") {
  bool gone = false;
  HttpExchange& exchange = ask(1);
  exchange.set_callbacks({{}, [&] { gone = true; }});
  desk.reset();
  exchange.reply(200, {}, "nobody hears it");
  CHECK(exchange.unsent() == 0);
  CHECK(run_until([&] { return gone; }));
}

TEST_CASE_FIXTURE(DeskTest, "what no coordinator does is told") {
  ask(7);
  message::Request again;
  again.target = "/";
  again.id = 7;
  CHECK(desk->take(again) != nullptr);
  again.id = 6;
  CHECK(desk->take(again) != nullptr);
  CHECK(desk->take(message::Credit{8, 1}) != nullptr);
  CHECK(desk->take(message::Credit{6, 1}) == nullptr);  // one that is over
  for (int64_t id = 8; desk->open() < kMaxOpenRequests; ++id)
    ask(id);
  again.id = 1000;
  CHECK(desk->take(again) != nullptr);
}

TEST_CASE_FIXTURE(DeskTest, "a target that is none is a bad request") {
  message::Request request;
  request.id = 1;
  request.target = "/%zz";
  CHECK(desk->take(request) == nullptr);
  CHECK(exchanges.empty());
  CHECK(std::get<message::Answer>(sent.front()).status == 400);
}

}  // namespace muster
