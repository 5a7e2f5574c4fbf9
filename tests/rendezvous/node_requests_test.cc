// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/node_requests.h"

#include <doctest/doctest.h>

#include "loop/loop_test.h"

namespace muster {

namespace {

// The coordinator's table alone; the test is all agents.
struct TableTest : LoopTest {
  std::vector<std::pair<std::string, HostMessage>> sent;
  std::vector<std::string> told;  // what a requester heard
  NodeRequests table{loop, [this](const std::string& agent, HostMessage message) {
                       sent.emplace_back(agent, std::move(message));
                     }};

  RemoteRequest::Callbacks callbacks() {
    return {[this](int status, const HttpHeaders&, int64_t length) {
              told.push_back("head " + std::to_string(status) + " " + std::to_string(length));
            },
            [this](std::string_view bytes) { told.push_back(std::string(bytes)); },
            [this] { told.push_back("end"); },
            [this](int status, const std::string& why) {
              told.push_back("broken " + std::to_string(status) + " " + why);
            }};
  }
  std::unique_ptr<RemoteRequest> start(const std::string& agent = "b") {
    auto request = table.start(agent, {"/x", {}}, callbacks());
    REQUIRE(request);
    return std::move(*request);
  }
  int64_t last_id() const { return std::get<message::Request>(sent.back().second).id; }
};

}  // namespace

TEST_CASE_FIXTURE(TableTest, "an answer reaches whoever asked, and no one after its end") {
  auto request = start();
  const int64_t id = last_id();
  CHECK(table.take("b", message::Answer{id, 200, {}, 3}) == nullptr);
  CHECK(table.take("b", message::Piece{id, "abc"}) == nullptr);
  CHECK(table.take("b", message::AnswerEnd{id}) == nullptr);
  CHECK(told == std::vector<std::string>{"head 200 3", "abc", "end"});
  CHECK(table.open() == 0);
  CHECK(table.take("b", message::Piece{id, "abc"}) == nullptr);
  request.reset();
  CHECK(told.size() == 3);
  CHECK(sent.size() == 1);  // no cancel of what is over
}

TEST_CASE_FIXTURE(TableTest, "credit is given in portions, and no more than is consumed") {
  auto request = start();
  const int64_t id = last_id();
  table.take("b", message::Answer{id, 200, {}, -1});
  const std::string piece(kMaxPiece, 'x');
  CHECK(table.take("b", message::Piece{id, piece}) == nullptr);
  CHECK(table.take("b", message::Piece{id, piece}) == nullptr);
  request->consumed(1'000);
  CHECK(sent.size() == 1);
  request->consumed(kMaxPiece - 1'000);
  REQUIRE(sent.size() == 2);
  CHECK(std::get<message::Credit>(sent[1].second).bytes == int64_t{kMaxPiece});
  CHECK(table.take("b", message::Piece{id, piece}) == nullptr);
  CHECK(table.take("b", message::Piece{id, "y"}) != nullptr);
}

TEST_CASE_FIXTURE(TableTest, "who lets go cancels, and what is under way is of no interest") {
  auto request = start();
  const int64_t id = last_id();
  request.reset();
  CHECK(std::get<message::Cancel>(sent.back().second).id == id);
  CHECK(table.take("b", message::Answer{id, 200, {}, -1}) == nullptr);
  CHECK(table.take("b", message::AnswerBroken{id}) == nullptr);
  CHECK(told.empty());
}

TEST_CASE_FIXTURE(TableTest, "an id is never used again") {
  auto request = start();
  const int64_t first = last_id();
  request.reset();
  request = start();
  CHECK(last_id() > first);
}

TEST_CASE_FIXTURE(TableTest, "what no agent does is told") {
  auto request = start();
  const int64_t id = last_id();
  CHECK(table.take("b", message::Piece{id, "x"}) != nullptr);
  CHECK(table.take("b", message::AnswerEnd{id}) != nullptr);
  CHECK(table.take("c", message::Answer{id, 200, {}, -1}) != nullptr);
  CHECK(table.take("b", message::Answer{id + 1, 200, {}, -1}) != nullptr);
  CHECK(told.empty());
  CHECK(table.take("b", message::Answer{id, 200, {}, -1}) == nullptr);
  CHECK(table.take("b", message::Answer{id, 200, {}, -1}) != nullptr);
}

TEST_CASE_FIXTURE(TableTest, "when a node is gone its answers are broken, the others' are not") {
  auto of_b = start("b");
  auto of_c = start("c");
  auto dropped = start("b");
  table.gone("b");
  CHECK(told.empty());  // from the loop
  dropped.reset();
  REQUIRE(run_until([&] { return !told.empty(); }));
  CHECK(told == std::vector<std::string>{"broken 502 the node is gone"});
  CHECK(table.open() == 1);
}

TEST_CASE_FIXTURE(TableTest, "a node that gives up an answer says so") {
  auto request = start();
  CHECK(table.take("b", message::AnswerBroken{last_id()}) == nullptr);
  CHECK(run_until([&] { return !told.empty(); }));
  CHECK(told.back().starts_with("broken 502"));
}

TEST_CASE_FIXTURE(TableTest, "a node that does not begin its answer in time is not waited for") {
  NodeRequests hasty(
      loop,
      [this](const std::string& agent, HostMessage message) {
        sent.emplace_back(agent, std::move(message));
      },
      Milliseconds(1));
  auto request = hasty.start("b", {"/x", {}}, callbacks());
  REQUIRE(request);
  REQUIRE(run_until([&] { return !told.empty(); }));
  CHECK(told.back() == "broken 504 the node did not answer in time");
  CHECK(std::holds_alternative<message::Cancel>(sent.back().second));
  CHECK(hasty.open() == 0);
}

TEST_CASE_FIXTURE(TableTest, "requests are bounded, at one node and at all") {
  std::vector<std::unique_ptr<RemoteRequest>> open;
  for (size_t i = 0; i < kMaxOpenRequests; ++i)
    open.push_back(start("b"));
  auto one_more = table.start("b", {"/x", {}}, callbacks());
  REQUIRE_FALSE(one_more);
  CHECK(one_more.error().code == 503);
  for (int node = 0; open.size() < kMaxForwardedRequests; ++node)
    open.push_back(start("n" + std::to_string(node)));
  CHECK_FALSE(table.start("c", {"/x", {}}, callbacks()));
  open.pop_back();
  CHECK(table.start("c", {"/x", {}}, callbacks()));
}

TEST_CASE_FIXTURE(TableTest, "a target that is too long is no request") {
  auto request = table.start("b", {"/" + std::string(100'000, 'x'), {}}, callbacks());
  REQUIRE_FALSE(request);
  CHECK(request.error().code == 414);
  CHECK(sent.empty());
}

TEST_CASE_FIXTURE(TableTest, "who had which part of which attempt is remembered, within a bound") {
  CHECK(table.agent_at(-1, 0).empty());
  table.placed(0, 1, "b");
  table.placed(0, 2, "c");
  table.placed(1, 1, "c");
  CHECK(table.agent_at(0, 1) == "b");
  CHECK(table.agent_at(0, 2) == "c");
  CHECK(table.agent_at(1, 1) == "c");
  CHECK(table.agent_at(-1, 1) == "c");
  CHECK(table.agent_at(1, 2).empty());
  for (int node = 0; node < static_cast<int>(kMaxPlaces); ++node)
    table.placed(2, node, "n");
  CHECK(table.agent_at(0, 1).empty());
  CHECK(table.agent_at(2, 0) == "n");
}

}  // namespace muster
