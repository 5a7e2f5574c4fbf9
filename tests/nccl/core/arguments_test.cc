// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "nccl/core/fake_backend.h"
#include "nccl/core/texts.h"

namespace muster::comm::detail {
namespace {

// Of three ranks, this one is 0.
struct Fixture {
  std::shared_ptr<Script> script = std::make_shared<Script>();
  Communicator all = fake_communicator(script);
  std::vector<float> two = std::vector<float>(2);
  std::vector<float> also_two = std::vector<float>(2);
  std::vector<float> six = std::vector<float>(6);
  std::vector<float> also_six = std::vector<float>(6);
  std::vector<int> whole = std::vector<int>(2);

  // What is said of a wrong call, after "communicator world: ".
  static std::string wrong(Work work) {
    const Result<void> result = work.wait();
    if (result) return "it is right";
    CHECK(result.error().code == ErrorCode::kInvalidArgument);
    return result.error().message.substr(std::string("communicator world: ").size());
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "arguments: a peer and a root are ranks of the communicator") {
  CHECK(wrong(all.send(two, 3)) == "send: peer: rank 3 of 3");
  CHECK(wrong(all.recv(two, -1)) == "recv: peer: rank -1 of 3");
  CHECK(wrong(all.send(two, 0)) == "send: peer: rank 0 is this one");
  CHECK(wrong(all.broadcast(two, 3)) == "broadcast: root: rank 3 of 3");
  CHECK(wrong(all.send(two, 1, -1)) == "send: tag: -1: it must not be negative");
}

TEST_CASE_FIXTURE(Fixture, "arguments: sizes that cannot be are named with what they must be") {
  CHECK(wrong(all.all_reduce(two, six, ReduceOp::kSum)) ==
        "all_reduce: out: 6 elements, it must be 2 (as in)");
  CHECK(wrong(all.all_gather(two, also_two)) ==
        "all_gather: out: 2 elements, it must be 6 (3 ranks, 2 each)");
  CHECK(wrong(all.reduce_scatter(two, also_two)) ==
        "reduce_scatter: in: 2 elements, it must be 6 (3 ranks, 2 each)");
  CHECK(wrong(all.scatter(two, also_two, 0)) ==
        "scatter: in: 2 elements, it must be 6 (3 ranks, 2 each)");
  CHECK(wrong(all.gather(two, also_two, 0)) ==
        "gather: out: 2 elements, it must be 6 (3 ranks, 2 each)");
  CHECK(wrong(all.reduce(two, six, ReduceOp::kSum, 0)) ==
        "reduce: out: 6 elements, it must be 2 (as in)");
  CHECK(wrong(all.all_to_all(two, also_two)) ==
        "all_to_all: in: 2 elements are not the same number for each of 3 ranks");
  CHECK(wrong(all.all_to_all(six, also_two)) ==
        "all_to_all: out: 2 elements, it must be 6 (as in)");
}

TEST_CASE_FIXTURE(Fixture, "arguments: counts are one for each rank and add up") {
  const std::vector<size_t> counts{2, 1, 3};
  const std::vector<size_t> few{2, 4};
  CHECK(wrong(all.all_gather(two, six, counts)) == "it is right");
  CHECK(wrong(all.all_gather(two, six, few)) ==
        "all_gather: counts: 2 of them, it must be one for each of 3 ranks");
  CHECK(wrong(all.all_gather(two, also_two, counts)) ==
        "all_gather: out: 2 elements, it must be 6 (the sum of counts)");
  CHECK(wrong(all.reduce_scatter(six, also_six, counts, ReduceOp::kSum)) ==
        "reduce_scatter: out: 6 elements, it must be 2 (counts[rank()])");
  CHECK(wrong(all.all_to_all(six, counts, also_six, few)) ==
        "all_to_all: out_counts: 2 of them, it must be one for each of 3 ranks");
  CHECK(wrong(all.all_to_all(two, counts, also_six, counts)) ==
        "all_to_all: in: 2 elements, it must be 6 (the sum of in_counts)");
  const std::vector<size_t> huge{1, SIZE_MAX, 2};
  CHECK(wrong(all.all_gather(two, six, huge)) ==
        "all_gather: counts: their sum is more than memory has");
}

TEST_CASE_FIXTURE(Fixture, "arguments: memory that is not there, overlaps or is the other kind") {
  CHECK(wrong(all.all_reduce(Buffer(nullptr, 2, DataType::kFloat32))) ==
        "all_reduce: in: null with 2 elements");
  CHECK(wrong(all.all_reduce(Buffer(nullptr, 0, DataType::kFloat32))) == "it is right");
  CHECK(wrong(all.broadcast(Buffer::device(two.data(), 2, DataType::kFloat32, nullptr), 1)) ==
        "broadcast: buffer: device memory; the backend gloo works on host memory");
  CHECK(wrong(all.all_gather(std::span(six).first(2), six)) ==
        "all_gather: out: it must not overlap in");
  CHECK(wrong(all.all_reduce(std::span(six).first(3), std::span(six).subspan(1, 3),
                             ReduceOp::kSum)) ==
        "all_reduce: out: it overlaps in without being the same memory");
  CHECK(wrong(all.reduce(two, two, ReduceOp::kSum, 0)) == "it is right");
  CHECK(wrong(all.all_reduce(two, whole, ReduceOp::kSum)) ==
        "all_reduce: out: int32, but in is float32");
  CHECK(wrong(all.all_reduce(two, static_cast<ReduceOp>(9))) ==
        "all_reduce: op: unknown reduction 9");
  CHECK(wrong(all.send(ConstBuffer(two.data(), SIZE_MAX / 2, DataType::kFloat32), 1))
            .find("more than memory has") != std::string::npos);
  CHECK(wrong(all.barrier({.timeout = std::chrono::milliseconds(0)})) ==
        "barrier: options.timeout: 0 ms: it must be positive");
}

TEST_CASE_FIXTURE(Fixture, "arguments: what is ignored on a rank may be anything") {
  CHECK(wrong(all.reduce(two, Buffer(nullptr, 77, DataType::kInt8), ReduceOp::kSum, 1)) ==
        "it is right");
  CHECK(wrong(all.scatter(ConstBuffer(nullptr, 77, DataType::kInt8), two, 1)) == "it is right");
  CHECK(wrong(all.gather(two, Buffer(nullptr, 77, DataType::kInt8), 1)) == "it is right");
}

TEST_CASE("arguments: device memory wants one stream, no tag, and no host memory") {
  auto script = std::make_shared<Script>();
  script->device = true;
  Communicator all = fake_communicator(script, {}, Backend::kNccl);
  std::vector<float> two(2);
  std::vector<float> more(2);
  int stream = 0;
  const Buffer here = Buffer::device(two.data(), 2, DataType::kFloat32, nullptr);
  const Buffer there = Buffer::device(more.data(), 2, DataType::kFloat32, &stream);
  CHECK(Fixture::wrong(all.all_reduce(here, there, ReduceOp::kSum)) ==
        "all_reduce: out: it is on another stream than in");
  CHECK(Fixture::wrong(all.send(here, 1, 5)) == "send: tag: 5: the backend nccl takes only 0");
  CHECK(Fixture::wrong(all.all_reduce(two)) ==
        "all_reduce: in: host memory; the backend nccl works on device memory (device())");
}

TEST_CASE_FIXTURE(Fixture, "arguments: groups are of members, each once, oneself among them") {
  const auto wrong_group = [&](std::vector<int> ranks) {
    return all.new_group(ranks).error().message;
  };
  CHECK(wrong_group({}) == "new_group: ranks: nobody");
  CHECK(wrong_group({0, 3}) == "new_group: ranks: rank 3 of 3");
  CHECK(wrong_group({0, 1, 1}) == "new_group: ranks: rank 1 twice");
  CHECK(wrong_group({1, 2}) ==
        "new_group: ranks: rank 0, this one, is not among them; only members call it");
  CHECK(all.split(-2).error().message == "split: color: -2: it must be 0 or more, or kNoColor");
  CHECK(all.shrink(std::vector<int>{0}).error().message ==
        "shrink: excluded: rank 0 is this one; only those who stay call it");
  CHECK(all.new_group(std::vector<int>{0}, {.timeout = std::chrono::milliseconds(-1)})
            .error()
            .message == "new_group: options.timeout: -1 ms: it must be positive");
  CHECK(all.grow(std::vector<int>{9}).error().message ==
        "grow: options.name: none; those who join have to say the same one");
}

TEST_CASE("sizes and times are written as people read them") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(999) == "999 B");
  CHECK(bytes_text(1000) == "1 kB");
  CHECK(bytes_text(4'200'000) == "4.2 MB");
  CHECK(bytes_text(999'960'000) == "1 GB");
  CHECK(bytes_text(68'000'000'000) == "68 GB");
  CHECK(time_text(std::chrono::milliseconds(250)) == "250 ms");
  CHECK(time_text(std::chrono::milliseconds(1500)) == "1.5 s");
  CHECK(time_text(std::chrono::seconds(61)) == "61 s");
  CHECK(time_text(std::chrono::minutes(10)) == "10 min");
}

}  // namespace muster::comm::detail
