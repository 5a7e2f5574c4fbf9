// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/operation_codec.h"

#include <doctest/doctest.h>

#include <random>

namespace muster {

namespace {

using comm::detail::OpKind;
using worker_page::OpState;

RankOperations some_operations(size_t communicators = 2) {
  RankOperations operations;
  for (size_t i = 0; i < communicators; ++i) {
    RankCommunicator& communicator = operations.communicators.emplace_back();
    communicator.id = ~uint64_t{0} - i;
    communicator.rank = 1;
    communicator.size = 4;
    communicator.name = "dp" + std::to_string(i);
    communicator.members = {{0, 8, 3}, {5, 1, 1}};
    communicator.collectives = 128;
    communicator.messages = 3;
    RankCall& done = communicator.calls.emplace_back();
    done.kind = OpKind::kRecv;
    done.state = OpState::kDone;
    done.sequence = 3;
    done.root_or_peer = 2;
    done.tag = -7;
    done.age_us = 9'000'000;
    done.took_us = 250;
    RankCall& running = communicator.calls.emplace_back();
    running.kind = OpKind::kAllReduce;
    running.type = comm::DataType::kBfloat16;
    running.reduce = comm::ReduceOp::kAverage;
    running.sequence = 128;
    running.count = 1'050'000;
    running.age_us = 61'000'000;
  }
  return operations;
}

RankOperations decoded(const std::string& bytes, bool& good) {
  packed::Reader reader(bytes);
  RankOperations operations;
  decode_operations(reader, operations);
  good = !reader.bad();
  return operations;
}

}  // namespace

TEST_CASE("operations survive the way") {
  bool good = false;
  const RankOperations back = decoded(encode_operations(some_operations()), good);
  REQUIRE(good);
  REQUIRE(back.communicators.size() == 2);
  const RankCommunicator& communicator = back.communicators[1];
  CHECK(communicator.id == ~uint64_t{0} - 1);
  CHECK(communicator.rank == 1);
  CHECK(communicator.size == 4);
  CHECK(communicator.name == "dp1");
  CHECK_FALSE(communicator.closed);
  CHECK(member_at(communicator, 2) == 16);
  CHECK(member_at(communicator, 3) == 5);
  CHECK(communicator.collectives == 128);
  CHECK(communicator.messages == 3);
  REQUIRE(communicator.calls.size() == 2);
  const RankCall& done = communicator.calls[0];
  CHECK(done.kind == OpKind::kRecv);
  CHECK(done.done());
  CHECK(done.root_or_peer == 2);
  CHECK(done.tag == -7);
  CHECK(done.took_us == 250);
  const RankCall& running = communicator.calls[1];
  CHECK(running.type == comm::DataType::kBfloat16);
  CHECK(running.reduce == comm::ReduceOp::kAverage);
  CHECK(running.state == OpState::kRunning);
  CHECK(running.count == 1'050'000);
  CHECK(running.age_us == 61'000'000);
  CHECK(running.took_us == -1);
}

TEST_CASE("the extremes of what a page may say survive the way") {
  constexpr uint64_t kMost = worker_page::kMaxNumber;
  for (int tag : {INT32_MIN, -1, INT32_MAX}) {
    RankOperations operations = some_operations(1);
    RankCommunicator& communicator = operations.communicators[0];
    communicator.size = worker_page::kMaxWorld;
    communicator.rank = worker_page::kMaxWorld - 1;
    communicator.members.clear();
    communicator.collectives = communicator.messages = kMost;
    RankCall& call = communicator.calls[0];
    call.sequence = call.count = kMost;
    call.root_or_peer = worker_page::kMaxWorld - 1;
    call.tag = tag;
    call.age_us = call.took_us = INT64_MAX;
    bool good = false;
    const RankOperations back = decoded(encode_operations(operations), good);
    REQUIRE(good);
    const RankCall& same = back.communicators.at(0).calls.at(0);
    CHECK(same.tag == std::max(tag, -INT32_MAX));
    CHECK(same.count == kMost);
    CHECK(same.took_us == static_cast<int64_t>(kMost));
    CHECK(back.communicators[0].rank == worker_page::kMaxWorld - 1);
  }
}

TEST_CASE("operations are small") {
  CHECK(encode_operations(some_operations(1)).size() < 80);
}

TEST_CASE("operations that were cut are refused") {
  const std::string whole = encode_operations(some_operations());
  for (size_t size = 0; size < whole.size(); ++size) {
    bool good = true;
    decoded(whole.substr(0, size), good);
    CHECK_FALSE(good);
  }
}

TEST_CASE("hostile operations are refused or in range") {
  const std::string whole = encode_operations(some_operations());
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 3; ++i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    bool good = false;
    const RankOperations back = decoded(bytes, good);
    CHECK(back.communicators.size() <= kMaxRankCommunicators);
    if (!good) continue;
    for (const RankCommunicator& communicator : back.communicators) {
      CHECK(communicator.rank < communicator.size);
      for (int rank = 0; rank < std::min(communicator.size, 2000); ++rank)
        CHECK(member_at(communicator, rank) >= -1);
    }
  }
}

TEST_CASE("of too many operations those of communicators that wait are kept") {
  RankOperations operations = some_operations(kMaxRankCommunicators + 5);
  for (RankCommunicator& communicator : operations.communicators) {
    communicator.calls[1].state = OpState::kDone;
    communicator.calls[1].took_us = 1;
    communicator.calls.resize(kMaxOpenCalls + kMaxDoneCalls, communicator.calls[1]);
    for (int i = 0; i < 32; ++i)
      communicator.members.resize(kMaxRankRuns, {1'000'000, 1'000, 1});
    communicator.size = static_cast<int>(kMaxRankRuns) + 2;
  }
  operations.communicators.back().calls[0].state = OpState::kRunning;
  operations.communicators.back().calls[0].took_us = -1;
  const std::string bytes = encode_operations(operations);
  CHECK(bytes.size() <= kMaxOperationBytes + 2);
  bool good = false;
  const RankOperations back = decoded(bytes, good);
  REQUIRE(good);
  CHECK(back.communicators.size() < operations.communicators.size());
  CHECK(back.communicators.at(0).name == operations.communicators.back().name);
}

TEST_CASE("what is known of a node's ranks survives the way") {
  auto operations = std::make_shared<const RankOperations>(some_operations());
  const std::vector<KnownRank> known = {{8, RankEnd::kDied, 0, operations},
                                        {9, RankEnd::kRunning, 0, nullptr},
                                        {10, RankEnd::kStopped, 0, operations}};
  std::vector<KnownRank> back;
  REQUIRE(decode_known_ranks(encode_known_ranks(known), back));
  REQUIRE(back.size() == 3);
  CHECK(back[0].rank == 8);
  CHECK(back[0].end == RankEnd::kDied);
  CHECK(back[0].operations->communicators.size() == 2);
  CHECK_FALSE(back[1].operations);
  CHECK(back[2].end == RankEnd::kStopped);
  CHECK_FALSE(decode_known_ranks("", back));
  CHECK_FALSE(decode_known_ranks("\x02\x01", back));  // another version
}

TEST_CASE("of very many ranks the operations that fit are told, and the end of each") {
  auto operations = std::make_shared<const RankOperations>(some_operations(20));
  auto few = std::make_shared<const RankOperations>(some_operations(1));
  std::vector<KnownRank> known(1000, {0, RankEnd::kRunning, 0, operations});
  known[998] = {998, RankEnd::kDied, 0, operations};
  known[999] = {999, RankEnd::kFinished, 0, few};
  const std::string bytes = encode_known_ranks(known);
  CHECK(bytes.size() <= kMaxOutcomeOperations + 8);
  std::vector<KnownRank> back;
  REQUIRE(decode_known_ranks(bytes, back));
  REQUIRE(back.size() == 1000);
  CHECK(back[10].operations);
  CHECK_FALSE(back[998].operations);
  CHECK(back[998].rank == 998);
  CHECK(back[998].end == RankEnd::kDied);
  CHECK(back[999].end == RankEnd::kFinished);
  CHECK(back[999].operations);  // it still fits
}

TEST_CASE("more ranks than fit by their ends alone are cut") {
  std::vector<KnownRank> known(65'536, {1 << 30, RankEnd::kDied, 0, nullptr});
  const std::string bytes = encode_known_ranks(known);
  CHECK(bytes.size() <= kMaxOutcomeOperations + 8);
  std::vector<KnownRank> back;
  REQUIRE(decode_known_ranks(bytes, back));
  CHECK(back.size() > 20'000);
  CHECK(back.back().end == RankEnd::kDied);
}

}  // namespace muster
