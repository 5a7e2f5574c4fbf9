// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <stdexcept>

#include "nccl/core/fake_backend.h"

namespace muster::comm::detail {
namespace {

struct Fixture {
  std::shared_ptr<Script> script = std::make_shared<Script>();
  Communicator all = fake_communicator(script);
  std::vector<float> numbers = std::vector<float>(8);
  std::vector<float> others = std::vector<float>(8);
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a group begins together, and each Work says what the group's does") {
  GroupGuard group;
  Work send = all.send(numbers, 1);
  Work recv = all.recv(others, 2);
  CHECK(script->calls().empty());
  CHECK(!send.test());
  CHECK(send.wait().error().code == ErrorCode::kInvalidArgument);  // it would wait for ever
  CHECK(group.end().wait().has_value());
  CHECK(script->calls() == std::vector<std::string>{"run send recv"});
  CHECK(send.test());
  CHECK(recv.wait().has_value());
  CHECK(all.barrier().wait().has_value());  // the group is over
}

TEST_CASE_FIXTURE(Fixture, "a group of two communicators begins on both at the same time") {
  auto second_script = std::make_shared<Script>();
  Communicator second = fake_communicator(second_script);
  script->hold();
  GroupGuard group;
  Work first = all.all_reduce(numbers);
  static_cast<void>(second.all_reduce(others));
  Work end = group.end({.async = true});
  CHECK(second_script->wait_for("run all_reduce"));
  CHECK(!end.test());
  script->release();
  CHECK(end.wait().has_value());
  CHECK(first.test());
}

TEST_CASE_FIXTURE(Fixture, "a group dropped by a throw is nothing, and takes no numbers") {
  Work work;
  try {
    GroupGuard group;
    work = all.all_reduce(numbers);
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
  }
  CHECK(work.wait().error().code == ErrorCode::kAborted);
  CHECK(script->calls().empty());
  script->answer(Error{ErrorCode::kTimeout, ""});
  CHECK(all.all_reduce(numbers).wait().error().message.starts_with("all_reduce #1 "));
}

TEST_CASE_FIXTURE(Fixture, "one wrong call spoils its group as a whole") {
  GroupGuard group;
  Work good = all.send(numbers, 1);
  CHECK(!all.recv(others, 7).wait());
  const Result<void> end = group.end().wait();
  REQUIRE(!end);
  CHECK(end.error().code == ErrorCode::kInvalidArgument);
  CHECK(good.wait().error().message.find("recv: peer: rank 7 of 3") != std::string::npos);
  CHECK(script->calls().empty());
}

TEST_CASE_FIXTURE(Fixture, "groups do not nest, and the outer one is none the worse for it") {
  GroupGuard outer;
  {
    GroupGuard inner;
    CHECK(inner.end().wait().error().code == ErrorCode::kInvalidArgument);
  }
  Work work = all.barrier();
  CHECK(outer.end().wait().has_value());
  CHECK(work.test());
  CHECK(outer.end().wait().error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE_FIXTURE(Fixture, "a group takes so many operations and no more") {
  GroupGuard group;
  for (int i = 0; i < 65536; ++i)
    static_cast<void>(all.send(numbers, 1));
  CHECK(!all.send(numbers, 1).wait());
  CHECK(group.end().wait().error().message.find("more than 65536") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a batch is one group of messages") {
  const std::vector<P2p> both{P2p::send(numbers, 1), P2p::recv(others, 1, 3)};
  CHECK(all.batch(both).wait().has_value());
  CHECK(script->calls() == std::vector<std::string>{"run send recv"});
  CHECK(all.batch({}).wait().has_value());
  const std::vector<P2p> wrong{P2p::send(numbers, 1), P2p::recv(others, 1, -3)};
  CHECK(all.batch(wrong).wait().error().message ==
        "communicator world: recv: tag: -3: it must not be negative");
}

TEST_CASE_FIXTURE(Fixture, "messages overtake collectives that wait in the background") {
  script->hold();
  Work collective = all.all_reduce(numbers, ReduceOp::kSum, {.async = true});
  CHECK(script->wait_for("run all_reduce"));
  Work message = all.isend(others, 1);
  CHECK(script->calls().back() == "start send");
  script->release();
  CHECK(message.wait().has_value());
  CHECK(collective.wait().has_value());
}

}  // namespace muster::comm::detail
