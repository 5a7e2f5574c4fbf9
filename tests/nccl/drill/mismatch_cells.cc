// SPDX-License-Identifier: Apache-2.0
// Ranks that do not do the same. Unchecked, nothing but time can end that; checked, it is named
// before it hangs.
#include "nccl/drill/drill.h"

namespace muster::comm::test {
namespace {

using Operation = std::function<Work(Communicator&, TestBuffer&)>;

void differ(Drill& drill, const Operation& odd, const Operation& others) {
  Communicator all = drill.all(kShort);
  TestBuffer& buffer = drill.floats(1 << 18);
  const Operation& mine = drill.is(1) ? odd : others;
  drill.fails("the operation",
              {ErrorCode::kTimeout, ErrorCode::kPeerLost, ErrorCode::kMismatch, ErrorCode::kSystem},
              kShort, [&] { return mine(all, buffer).wait(); });
  drill.meet("gave up");
}

void differ_checked(Drill& drill, const Operation& odd, const Operation& others,
                    const std::string& says) {
  Communicator all = drill.all(milliseconds(10'000), true);
  TestBuffer& buffer = drill.floats(1 << 18);
  drill.works(all);
  const Operation& mine = drill.is(1) ? odd : others;
  drill.fails(
      "the operation", {ErrorCode::kMismatch}, milliseconds(5000),
      [&] { return mine(all, buffer).wait(); }, says);
  drill.meet("gave up");
}

Work sum(Communicator& all, TestBuffer& buffer) {
  return all.all_reduce(buffer);
}
Work maximum(Communicator& all, TestBuffer& buffer) {
  return all.all_reduce(buffer, ReduceOp::kMax);
}
Work from_0(Communicator& all, TestBuffer& buffer) {
  return all.broadcast(buffer, 0);
}
Work from_1(Communicator& all, TestBuffer& buffer) {
  return all.broadcast(buffer, 1);
}
Work half(Communicator& all, TestBuffer& buffer) {
  return all.all_reduce(buffer.buffer().part(0, 1 << 17));
}
Work integers(Communicator& all, TestBuffer& buffer) {
  Buffer other = buffer.buffer();
  other.type = DataType::kInt32;
  return all.all_reduce(other);
}

void kinds(Drill& drill) {
  differ(drill, from_0, sum);
}
void kinds_checked(Drill& drill) {
  differ_checked(drill, from_0, sum, "broadcast");
}
void sizes_checked(Drill& drill) {
  differ_checked(drill, half, sum, "131072");
}
void types_checked(Drill& drill) {
  differ_checked(drill, integers, sum, "int32");
}
void roots_checked(Drill& drill) {
  differ_checked(drill, from_1, from_0, "root 1");
}
void reductions_checked(Drill& drill) {
  differ_checked(drill, maximum, sum, "max");
}

// Two communicators, used in opposite order: each waits for the other's first.
void crossed(Drill& drill) {
  Communicator first = drill.all(kShort, false, "first");
  Communicator second = drill.all(kShort, false, "second");
  TestBuffer& buffer = drill.floats();
  Communicator& mine = drill.is(1) ? second : first;
  drill.fails("the operation", {ErrorCode::kTimeout, ErrorCode::kPeerLost}, kShort,
              [&] { return mine.all_reduce(buffer).wait(); });
  drill.meet("gave up");
}

// One rank comes with less than the others. What the library makes of it is its own matter, but it
// must end, and the process must live.
void sizes(Drill& drill) {
  Communicator all = drill.all(kShort);
  TestBuffer& buffer = drill.floats(1 << 18);
  const auto start = std::chrono::steady_clock::now();
  (void)(drill.is(1) ? half(all, buffer) : sum(all, buffer)).wait();
  drill.check(std::chrono::steady_clock::now() - start < kShort + kGrace, "it ends in time");
  drill.meet("gave up");
  drill.succeeds("abort", [&] { return all.abort(); });
}

void longer_message(Drill& drill) {
  Communicator all = drill.all(kShort);
  TestBuffer& buffer = drill.floats(1 << 18);
  const auto start = std::chrono::steady_clock::now();
  (void)(drill.is(0) ? all.send(buffer, 1) : all.recv(buffer.buffer().part(0, 16), 0)).wait();
  drill.check(std::chrono::steady_clock::now() - start < kShort + kGrace, "it ends in time");
  drill.meet("gave up");
  drill.check(buffer.values<float>()[100] == static_cast<float>(drill.rank() + 1),
              "nothing is written beyond what was asked for");
  drill.succeeds("abort", [&] { return all.abort(); });
}

void absent_checked(Drill& drill) {
  Communicator all = drill.all(kShort, true);
  TestBuffer& buffer = drill.floats();
  drill.works(all);
  if (!drill.is(2)) {
    drill.fails(
        "the operation", {ErrorCode::kTimeout}, kShort,
        [&] { return all.all_reduce(buffer).wait(); }, "rank 2");
  }
  drill.meet("gave up");
}

void wrong_arguments(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats();
  const auto wrong = [&](const std::string& what, Work work, const std::string& says) {
    drill.fails(
        what, {ErrorCode::kInvalidArgument}, milliseconds(0), [&] { return work.wait(); }, says);
  };
  wrong("a root that is not there", all.broadcast(buffer, 9), "9");
  wrong("a negative root", all.broadcast(buffer, -1), "-1");
  wrong("itself as a peer", all.send(buffer, drill.rank()), std::to_string(drill.rank()));
  wrong("too small an output", all.all_gather(buffer, buffer.buffer().part(0, 1)), "all_gather");
  Buffer nowhere = buffer.buffer();
  nowhere.data = nullptr;
  wrong("no memory", all.all_reduce(nowhere), "null");
  drill.works(all);
}

}  // namespace

std::vector<Cell> mismatch_cells() {
  return {{"wrong order", 3, kinds},
          {"wrong order, checked", 3, kinds_checked},
          {"crossed communicators", 3, crossed},
          {"wrong size", 3, sizes},
          {"wrong size, checked", 3, sizes_checked},
          {"a message longer than its place", 2, longer_message},
          {"wrong type, checked", 3, types_checked},
          {"wrong root, checked", 3, roots_checked},
          {"wrong reduction, checked", 3, reductions_checked},
          {"absent, checked", 3, absent_checked},
          {"wrong arguments", 2, wrong_arguments}};
}

}  // namespace muster::comm::test
