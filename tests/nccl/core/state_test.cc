// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <thread>

#include "nccl/core/fake_backend.h"

namespace muster::comm::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string message(const Result<void>& result) {
  return result ? "" : result.error().message;
}

struct Fixture {
  std::shared_ptr<Script> script = std::make_shared<Script>();
  Communicator all = fake_communicator(script);
  std::vector<float> numbers = std::vector<float>(1'050'000);
};

OpOptions within(milliseconds timeout, bool async = false) {
  return {timeout, async};
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "an operation is numbered, done and its Work is done") {
  Work work = all.all_reduce(numbers);
  CHECK(work.test());
  CHECK(work.wait().has_value());
  CHECK(script->calls() == std::vector<std::string>{"run all_reduce"});
  CHECK(all.close().has_value());
}

TEST_CASE_FIXTURE(Fixture,
                  "a timeout says which operation of which communicator, and what is known") {
  all.barrier().wait().value();
  script->hold();
  const Result<void> late =
      all.all_reduce(numbers, ReduceOp::kSum, within(milliseconds(50))).wait();
  REQUIRE(!late);
  CHECK(late.error().code == ErrorCode::kTimeout);
  CHECK(
      message(late) ==
      "all_reduce #2 (4.2 MB float32) of communicator world: timeout after 50 ms; rank 1 has sent "
      "nothing");
  CHECK(late.error().ranks == std::vector<int>{5});
}

TEST_CASE_FIXTURE(Fixture,
                  "after a timeout everything fails with it at once, without the backend") {
  script->hold();
  CHECK(!all.barrier(within(milliseconds(20))).wait());
  const size_t calls = script->calls().size();
  const Result<void> later = all.broadcast(numbers, 1).wait();
  REQUIRE(!later);
  CHECK(later.error().code == ErrorCode::kTimeout);
  CHECK(message(later).starts_with(
      "broadcast of communicator world: not done after an earlier error: barrier #1 of "
      "communicator world: timeout after 20 ms"));
  CHECK(script->calls().size() == calls);
  CHECK(all.status().error().code == ErrorCode::kTimeout);
  CHECK(all.close().has_value());
  CHECK(script->count("abort") == 1);
  CHECK(script->count("close") == 0);
}

TEST_CASE_FIXTURE(Fixture, "what the backend calls wrong leaves the communicator as it is") {
  script->answer(Error{ErrorCode::kInvalidArgument, "not in this version"});
  CHECK(all.barrier().wait().error().code == ErrorCode::kInvalidArgument);
  CHECK(all.barrier().wait().has_value());
}

TEST_CASE_FIXTURE(Fixture, "asynchronous operations are done in the order of the calls") {
  script->hold();
  Work first = all.all_reduce(numbers, ReduceOp::kSum, within(seconds(60), true));
  Work second = all.barrier(within(seconds(60), true));
  CHECK(!first.test());
  CHECK(!second.wait(milliseconds(10)));
  script->release();
  Work third = all.all_gather(std::array<int, 1>{}, numbers);  // wrong: refused at once
  CHECK(third.wait().error().code == ErrorCode::kInvalidArgument);
  CHECK(all.broadcast(numbers, 0).wait().has_value());  // waits for its turn
  CHECK(first.test());
  CHECK(second.test());
  CHECK(script->calls() ==
        std::vector<std::string>{"run all_reduce", "run barrier", "run broadcast"});
}

TEST_CASE_FIXTURE(Fixture, "so many operations wait in the background and no more") {
  script->hold();
  static_cast<void>(all.barrier(within(seconds(60), true)));
  REQUIRE(script->wait_for("run barrier"));
  for (int i = 0; i < 1024; ++i)
    static_cast<void>(all.barrier(within(seconds(60), true)));
  Work more = all.barrier(within(milliseconds(20), true));
  REQUIRE(more.test());
  CHECK(message(more.wait()) ==
        "barrier #1026 of communicator world: timeout after 20 ms; too many operations are waiting "
        "before it");
}

TEST_CASE("who waits for a place in the background is told of an abort as such") {
  // The abort may come before the last call as well: again, until it came while that one waited.
  std::string said;
  for (int turn = 0; turn < 50 && !said.starts_with("barrier #1026"); ++turn) {
    const auto script = std::make_shared<Script>();
    Communicator all = fake_communicator(script);
    script->hold(true);  // what runs makes no room when it is stopped
    static_cast<void>(all.barrier(within(seconds(60), true)));
    REQUIRE(script->wait_for("run barrier"));
    for (int i = 0; i < 1024; ++i)
      static_cast<void>(all.barrier(within(seconds(60), true)));
    std::atomic<bool> full = false;
    std::thread other([&] {
      full.wait(false);
      for (int i = 0; i < turn; ++i)
        std::this_thread::yield();
      CHECK(!all.abort("enough", milliseconds(100)));
    });
    full = true;
    full.notify_all();
    const Result<void> more = all.barrier(within(seconds(60), true)).wait();
    other.join();
    script->release();
    REQUIRE(!more);
    CHECK(more.error().code == ErrorCode::kAborted);
    said = message(more);
  }
  CHECK(said == "barrier #1026 of communicator world: aborted: enough");
}

TEST_CASE_FIXTURE(Fixture, "messages that end are seen behind many that wait") {
  script->hold_kind(OpKind::kRecv);
  std::vector<Work> waiting;
  waiting.reserve(200);
  for (int i = 0; i < 200; ++i)
    waiting.push_back(all.irecv(numbers, 1, i));
  static_cast<void>(all.isend(numbers, 1));  // nobody waits for it
  CHECK(script->wait_for_end(OpKind::kSend));
  script->release();
  for (Work& work : waiting)
    CHECK(work.wait().has_value());
}

TEST_CASE_FIXTURE(Fixture, "abort from another thread sends the caller back with the reason") {
  script->hold();
  std::thread other([&] {
    script->wait_for("run barrier");
    CHECK(all.abort("rank 2 is gone").has_value());
  });
  const Result<void> result = all.barrier().wait();
  other.join();
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::kAborted);
  CHECK(message(result) == "barrier #1 of communicator world: aborted: rank 2 is gone");
  CHECK(message(all.barrier().wait()) == "barrier of communicator world: aborted: rank 2 is gone");
}

}  // namespace muster::comm::detail
