// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/roll_call.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "store/client.h"
#include "store/server_thread.h"

namespace muster::comm::detail {

namespace {

using Clock = std::chrono::steady_clock;

struct RollCallTest {
  ServerThread server;

  std::unique_ptr<StoreClient> connect() const {
    auto client = StoreClient::connect({.host = "127.0.0.1", .port = server.port()});
    REQUIRE(client.has_value());
    return std::move(*client);
  }
};

Deadline in(int ms) {
  return Clock::now() + Duration(ms);
}

}  // namespace

TEST_CASE("ranks are listed in runs") {
  CHECK(rank_names({3}) == "rank 3");
  CHECK(rank_names({7, 3, 6, 5}) == "ranks 3 and 5-7");
  CHECK(rank_names({0, 1, 2, 5, 9}) == "ranks 0-2, 5 and 9");
  CHECK(rank_names({0, 1}) == "ranks 0-1");
}

TEST_CASE("an error travels as bytes") {
  const Error error{ErrorCode::kMismatch, "a: b", {1, 70'000}};
  const Error back = decode_error(encode_error(error));
  CHECK(back.code == error.code);
  CHECK(back.message == error.message);
  CHECK(back.ranks == error.ranks);
  CHECK(decode_error("").message.empty());
  CHECK(decode_error(std::string(8, '\xff')).ranks.empty());  // more ranks than bytes
}

TEST_CASE_FIXTURE(RollCallTest, "member 0 hears everybody, everybody hears the result") {
  const std::vector<int> ranks = {4, 2, 9};
  std::vector<std::thread> members;
  for (int member : {1, 2})
    members.emplace_back([&, member] {
      const auto store = connect();
      RollCall call(*store, "c", ranks, member, "test");
      CHECK(call.answer("i am " + std::to_string(member)).has_value());
      const Result<std::string> result = call.result(in(20'000));
      CHECK(result.value() == "done");
    });
  const auto store = connect();
  RollCall call(*store, "c", ranks, 0, "test");
  CHECK(call.answer("i am 0").has_value());
  const auto answers = call.collect(in(20'000));
  CHECK(answers.value() == std::vector<std::string>{"i am 0", "i am 1", "i am 2"});
  CHECK(call.publish(std::string("done")).has_value());
  CHECK(call.publish(Error{ErrorCode::kMismatch, "too late"}).has_value());
  for (std::thread& member : members)
    member.join();
}

TEST_CASE_FIXTURE(RollCallTest, "who does not come is named with the world's ranks, to all") {
  const std::vector<int> ranks = {10, 11, 12, 13, 14};
  const auto store = connect();
  const auto other = connect();
  RollCall first(*store, "c", ranks, 0, "test"), second(*other, "c", ranks, 2, "test");
  CHECK(first.answer("").has_value());
  CHECK(second.answer("").has_value());
  std::thread waiter([&] {
    const Result<std::string> result = second.result(in(60'000));
    REQUIRE_FALSE(result.has_value());  // told by member 0, long before its own deadline
    CHECK(result.error().ranks == std::vector<int>{11, 13, 14});
  });
  const auto answers = first.collect(in(200));
  REQUIRE_FALSE(answers.has_value());
  CHECK(answers.error().code == ErrorCode::kTimeout);
  CHECK(answers.error().ranks == std::vector<int>{11, 13, 14});
  CHECK(answers.error().message.starts_with(
      "test: ranks 11 and 13-14 of 5 have not arrived after 2"));
  CHECK(answers.error().message.ends_with(" ms"));
  waiter.join();
}

TEST_CASE_FIXTURE(RollCallTest, "without member 0 the others find out for themselves") {
  const std::vector<int> ranks = {0, 1, 2};
  const auto store = connect();
  RollCall call(*store, "c", ranks, 1, "test");
  CHECK(call.answer("").has_value());
  const Result<std::string> result = call.result(in(50));
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().ranks == std::vector<int>{0, 2});

  RollCall zero(*store, "c", ranks, 0, "test"), two(*store, "c", ranks, 2, "test");
  CHECK(zero.answer("").has_value());
  CHECK(two.answer("").has_value());
  const Result<std::string> silent = call.result(in(50));
  REQUIRE_FALSE(silent.has_value());
  CHECK(silent.error().message.starts_with(
      "test: all have arrived, but rank 0 has not said so after "));
}

TEST_CASE_FIXTURE(RollCallTest, "a lost store is no timeout") {
  const auto store = [] {
    const ServerThread brief;
    auto client = StoreClient::connect({.host = "127.0.0.1", .port = brief.port()});
    return std::move(*client);
  }();
  const std::vector<int> ranks = {0, 1};
  RollCall call(*store, "c", ranks, 1, "test");
  static_cast<void>(call.answer(""));
  const Result<std::string> result = call.result(in(2'000));
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::kStoreLost);
}

}  // namespace muster::comm::detail
