// SPDX-License-Identifier: Apache-2.0
// Groups: of operations that are begun together, and of ranks.
#include <stdexcept>

#include "nccl/drill/drill.h"

namespace muster::comm::test {
namespace {

constexpr milliseconds kAtOnce{0};

// A throw between the operations of a group: nothing of it was begun, and the next group works.
void left_open(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats();
  Work work;
  try {
    GroupGuard group;
    work = all.all_reduce(buffer);
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
  }
  drill.fails("the operation", {ErrorCode::kAborted}, kAtOnce, [&] { return work.wait(); });
  drill.check(buffer.values<float>()[0] == static_cast<float>(drill.rank() + 1), "it did nothing");
  drill.works(all);
}

void left_open_and_closed(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats();
  GroupGuard group;
  Work work = all.all_reduce(buffer);
  drill.succeeds("close", [&] { return all.close(); });
  drill.fails("the end of the group", {ErrorCode::kAborted}, kAtOnce,
              [&] { return group.end().wait(); });
  drill.fails("the operation", {ErrorCode::kAborted}, kAtOnce, [&] { return work.wait(); });
}

// Every rank sends to every other before it receives: only a group can do that.
void exchanged(Drill& drill) {
  Communicator all = drill.all(kLong);
  std::vector<TestBuffer*> in;
  std::vector<TestBuffer*> out;
  for (int peer = 0; peer < drill.size(); ++peer) {
    in.push_back(&drill.floats(1 << 20));
    out.push_back(&drill.floats(1 << 20));
  }
  GroupGuard group;
  std::vector<Work> works;
  for (int peer = 0; peer < drill.size(); ++peer) {
    if (drill.is(peer)) continue;
    const auto at = static_cast<size_t>(peer);
    works.push_back(all.send(*in[at], peer));
    works.push_back(all.recv(*out[at], peer));
  }
  drill.succeeds("the group", [&] { return group.end().wait(); });
  for (Work& work : works)
    drill.succeeds("each of it", [&] { return work.wait(); });
  for (int peer = 0; peer < drill.size(); ++peer) {
    const float got = out[static_cast<size_t>(peer)]->values<float>()[7];
    drill.check(got == static_cast<float>(peer + 1), "each got what was sent to it");
  }
}

void one_in_vain(Drill& drill) {
  Communicator all = drill.all(kShort);
  TestBuffer& buffer = drill.floats();
  TestBuffer& other = drill.floats();
  if (!drill.is(0)) {
    GroupGuard group;
    Work first = all.all_reduce(buffer);
    Work second = all.all_reduce(other);
    drill.fails("the group", {ErrorCode::kTimeout, ErrorCode::kPeerLost}, kShort,
                [&] { return group.end().wait(); });
    drill.check(first.test() && second.test(), "both have ended");
  }
  drill.meet("gave up");
}

void split_and_regroup(Drill& drill) {
  Communicator all = drill.all(kLong);
  Communicator half =
      all.split(drill.rank() % 2, -drill.rank(), {.timeout = kLong}).value().value();
  drill.check(half.size() == 2 && half.ranks()[0] > half.ranks()[1], "ordered by key");
  drill.works(half);
  std::vector<int> backwards;
  for (int rank = drill.size() - 1; rank >= 0; --rank)
    backwards.push_back(rank);
  Communicator turned = all.new_group(backwards, {.timeout = kLong}).value();
  drill.check(turned.rank() == drill.size() - 1 - drill.rank(), "in the order that was asked for");
  drill.works(turned);
  drill.succeeds("close", [&] { return half.close(); });
  drill.works(all);
  drill.works(turned);
  drill.succeeds("close", [&] { return all.close(); });
  drill.works(turned);
}

void split_without_some(Drill& drill) {
  Communicator all = drill.all(kLong);
  const int color = drill.is(1) ? kNoColor : 7;
  std::optional<Communicator> group = all.split(color, 0, {.timeout = kLong}).value();
  drill.check(group.has_value() == !drill.is(1), "who has no colour has no group");
  if (group) drill.works(*group);
  drill.works(all);
}

void split_in_vain(Drill& drill) {
  Communicator all = drill.all(kLong);
  if (!drill.is(1)) {
    drill.fails(
        "split", {ErrorCode::kTimeout}, kShort,
        [&]() -> Result<void> {
          auto group = all.split(0, 0, {.timeout = kShort});
          if (group) return {};
          return group.error();
        },
        "1");
  }
  drill.meet("gave up");
}

void groups_of_groups(Drill& drill) {
  Communicator all = drill.all(kLong);
  for (int round = 0; round < 5; ++round) {
    Communicator half =
        all.split((drill.rank() + round) / 2 % 2, 0, {.timeout = kLong}).value().value();
    Communicator alone = half.new_group(std::vector<int>{half.rank()}, {.timeout = kLong}).value();
    drill.check(alone.size() == 1 && alone.ranks()[0] == drill.rank(), "a group of one");
    drill.works(alone);
    drill.works(half);
  }
  drill.works(all);
}

void after_a_broken_one(Drill& drill) {
  for (int round = 0; round < 3; ++round) {
    Communicator all = drill.all(milliseconds(500), false, "round " + std::to_string(round));
    TestBuffer& buffer = drill.floats();
    if (!drill.is(round)) {
      drill.fails("all_reduce", {ErrorCode::kTimeout, ErrorCode::kPeerLost}, milliseconds(500),
                  [&] { return all.all_reduce(buffer).wait(); });
    }
    drill.meet("round " + std::to_string(round));
  }
  Communicator all = drill.all(kLong, false, "at last");
  drill.works(all);
  drill.succeeds("close", [&] { return all.close(); });
}

}  // namespace

std::vector<Cell> group_cells() {
  return {{"group left open by a throw", 3, left_open},
          {"group left open, communicator closed", 2, left_open_and_closed},
          {"group of sends and receives", 4, exchanged},
          {"group that cannot end", 3, one_in_vain},
          {"split and regroup", 4, split_and_regroup},
          {"split without some", 3, split_without_some},
          {"split in vain", 3, split_in_vain},
          {"groups of groups", 4, groups_of_groups},
          {"a new world after a broken one", 3, after_a_broken_one}};
}

}  // namespace muster::comm::test
