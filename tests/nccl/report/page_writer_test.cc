// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/page_writer.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "nccl/report/own_page.h"

namespace muster::comm::detail {
namespace {

using worker_page::kRingSize;
using worker_page::OpState;
using worker_page::RingEntry;

BlockPlan plan_of(uint64_t id, std::string_view name = "world") {
  static constexpr std::array<int, 3> kMembers = {4, 0, 9};
  return {id, name, 1, 3, kMembers, Backend::kNccl};
}

Operation operation_of(OpKind kind, size_t in, size_t out = 0) {
  Operation operation;
  operation.kind = kind;
  operation.reduce = ReduceOp::kMax;
  operation.root_or_peer = 2;
  operation.tag = 7;
  operation.in = ConstBuffer(nullptr, in, DataType::kFloat64);
  operation.out = Buffer(nullptr, out, DataType::kInt32);
  return operation;
}

OpState state_of(const RingEntry& entry) {
  return static_cast<OpState>(entry.state.load());
}

}  // namespace

TEST_CASE("a block says whose it is") {
  const PageBlock writer(plan_of(17));
  const auto& block = writer.block();
  CHECK(block.version % 2 == 0);
  CHECK(block.used == 1);
  CHECK(block.closed == 0);
  CHECK(block.id == 17);
  CHECK(block.rank == 1);
  CHECK(block.size == 3);
  CHECK(block.backend == static_cast<uint8_t>(Backend::kNccl));
  CHECK(std::string(block.name) == "world");
  CHECK(block.members == 3);
  CHECK(block.member[0] == 4);
  CHECK(block.member[2] == 9);
  CHECK(block.entries == 0);
}

TEST_CASE("an operation stands in the ring from its begin, and its end is noted") {
  PageBlock writer(plan_of(1));
  const int64_t before = monotonic_ns();
  const auto slot = writer.begin(operation_of(OpKind::kReduce, 100, 5));
  const RingEntry& entry = writer.block().ring[0];
  CHECK(entry.version % 2 == 0);
  CHECK(entry.sequence == 1);
  CHECK(entry.count == 100);
  CHECK(entry.type == static_cast<uint8_t>(DataType::kFloat64));
  CHECK(entry.kind == static_cast<uint8_t>(OpKind::kReduce));
  CHECK(entry.reduce == static_cast<uint8_t>(ReduceOp::kMax));
  CHECK(entry.root_or_peer == 2);
  CHECK(entry.tag == 7);
  CHECK(entry.start_ns >= before);
  CHECK(entry.end_ns == 0);
  CHECK(state_of(entry) == OpState::kRunning);
  CHECK(writer.block().entries == 1);
  writer.end(slot, true);
  CHECK(state_of(entry) == OpState::kDone);
  CHECK(entry.end_ns >= entry.start_ns);
}

TEST_CASE("what puts nothing in is measured by what it takes out") {
  PageBlock writer(plan_of(1));
  writer.begin(operation_of(OpKind::kRecv, 0, 12));
  CHECK(writer.block().ring[0].count == 12);
  CHECK(writer.block().ring[0].type == static_cast<uint8_t>(DataType::kInt32));
  writer.begin(operation_of(OpKind::kSend, 0));
  CHECK(writer.block().ring[1].type == static_cast<uint8_t>(DataType::kFloat64));
}

TEST_CASE("collectives and messages are counted apart") {
  PageBlock writer(plan_of(1));
  CHECK(writer.begin(operation_of(OpKind::kBarrier, 0)).sequence == 1);
  CHECK(writer.begin(operation_of(OpKind::kSend, 1)).sequence == 1);
  CHECK(writer.begin(operation_of(OpKind::kRecv, 0, 1)).sequence == 2);
  CHECK(writer.begin(operation_of(OpKind::kAllReduce, 1)).sequence == 2);
  CHECK(writer.block().collectives == 2);
  CHECK(writer.block().messages == 2);
  CHECK(writer.block().entries == 4);
}

TEST_CASE("an end that comes after a whole ring changes no other operation") {
  PageBlock writer(plan_of(1));
  const auto first = writer.begin(operation_of(OpKind::kBarrier, 0));
  for (int i = 0; i < kRingSize; i++)
    writer.begin(operation_of(OpKind::kBarrier, 0));
  writer.end(first, false);
  const RingEntry& entry = writer.block().ring[0];
  CHECK(entry.sequence == kRingSize + 1);
  CHECK(state_of(entry) == OpState::kRunning);
  CHECK(entry.end_ns == 0);
}

TEST_CASE("ending twice changes nothing") {
  PageBlock writer(plan_of(1));
  const auto slot = writer.begin(operation_of(OpKind::kBarrier, 0));
  writer.end(slot, true);
  writer.end(slot, false);
  CHECK(state_of(writer.block().ring[0]) == OpState::kDone);
}

TEST_CASE("the block closed first is used again, and the old owner no longer touches it") {
  std::deque<PageBlock> all;
  for (uint64_t i = 0; i < worker_page::kMaxCommunicators; i++)
    all.emplace_back(plan_of(i));
  const auto* third = &all[3].block();
  const auto late = all[3].begin(operation_of(OpKind::kBarrier, 0));
  all[3].close();
  all[1].close();
  PageBlock next(plan_of(100, "next"));
  CHECK(&next.block() == third);
  CHECK(third->entries == 0);
  next.begin(operation_of(OpKind::kBarrier, 0));
  all[3].end(late, false);
  all[3].close();
  CHECK(third->id == 100);
  CHECK(third->closed == 0);
  CHECK(state_of(third->ring[0]) == OpState::kRunning);
}

TEST_CASE("ends that come while their block is given away leave it good to write") {
  std::deque<PageBlock> others;
  for (uint64_t i = 1; i < worker_page::kMaxCommunicators; i++)
    others.emplace_back(plan_of(i));
  uint64_t torn = 0;
  for (int round = 0; round < 2000 && torn == 0; round++) {
    PageBlock old(plan_of(100));
    std::array<PageBlock::Slot, kRingSize> slots;
    for (PageBlock::Slot& slot : slots)
      slot = old.begin(operation_of(OpKind::kBarrier, 0));
    old.close();
    std::atomic<bool> started{false};
    std::thread ender([&] {
      started = true;
      for (const PageBlock::Slot& slot : slots)
        old.end(slot, true);
    });
    while (!started)
      std::this_thread::yield();
    const PageBlock next(plan_of(101));
    ender.join();
    REQUIRE(&next.block() == &old.block());
    for (const RingEntry& entry : next.block().ring) {
      if (entry.version % 2 != 0 || state_of(entry) != OpState::kNone) torn++;
    }
  }
  CHECK(torn == 0);
}

TEST_CASE("more communicators than blocks work without one") {
  std::deque<PageBlock> all;
  for (uint64_t i = 0; i <= worker_page::kMaxCommunicators; i++)
    all.emplace_back(plan_of(i));
  PageBlock& over = all.back();
  for (const auto& block : own_page().communicators)
    CHECK(&block != &over.block());
  over.end(over.begin(operation_of(OpKind::kAllReduce, 1)), true);
  CHECK(over.block().collectives == 1);
}

TEST_CASE("of a group that is too large only the size is told") {
  const std::vector<int> members(worker_page::kMaxMembers + 1);
  BlockPlan plan = plan_of(1);
  plan.world_ranks = members;
  plan.size = static_cast<int>(members.size());
  CHECK(PageBlock(plan).block().members == 0);
  plan.world_ranks = std::span(members).first(worker_page::kMaxMembers);
  CHECK(PageBlock(plan).block().members == worker_page::kMaxMembers);
}

TEST_CASE("a long name is cut between two characters") {
  std::string name(worker_page::kMaxName - 2, 'x');
  CHECK(std::string(PageBlock(plan_of(1, name + "y")).block().name) == name + "y");
  CHECK(std::string(PageBlock(plan_of(1, name + "\u00e4")).block().name) == name);
}

TEST_CASE("a reader never sees half an operation") {
  PageBlock writer(plan_of(1));
  std::atomic<bool> done{false};
  uint64_t seen = 0;
  uint64_t wrong = 0;
  std::thread reader([&] {
    do {
      for (const RingEntry& entry : writer.block().ring) {
        const uint64_t version = entry.version.load(std::memory_order_acquire);
        const uint64_t sequence = entry.sequence.load(std::memory_order_acquire);
        const uint64_t count = entry.count.load(std::memory_order_acquire);
        const OpState state = state_of(entry);
        const int64_t end = entry.end_ns.load(std::memory_order_acquire);
        if (version % 2 != 0 || version != entry.version.load(std::memory_order_relaxed)) continue;
        if (sequence == 0) continue;
        seen++;
        if (count != sequence * 3 || (state == OpState::kRunning) != (end == 0)) wrong++;
      }
    } while (!done);
  });
  // Ends come from another thread, a ring late at times.
  std::array<std::atomic<uint64_t>, 2> begun{};
  std::thread ender([&] {
    uint64_t ended = 0;
    do {
      const PageBlock::Slot slot{begun[0], begun[1], 0};
      writer.end(slot, true);
      ended++;
    } while (!done);
    CHECK(ended > 0);
  });
  for (size_t i = 1; i <= 200'000; i++) {
    const auto slot = writer.begin(operation_of(OpKind::kAllReduce, i * 3));
    begun[0] = slot.entry;
    begun[1] = slot.version;
    if (i % 2 == 0) writer.end(slot, true);
  }
  done = true;
  reader.join();
  ender.join();
  CHECK(seen > 0);
  CHECK(wrong == 0);
  CHECK(writer.block().collectives == 200'000);
}

}  // namespace muster::comm::detail
