// SPDX-License-Identifier: Apache-2.0
// Communicators that go away while something is under way.
#include <optional>

#include "nccl/drill/drill.h"

namespace muster::comm::test {
namespace {

void dropped_in_flight(Drill& drill) {
  TestBuffer& buffer = drill.floats(1 << 18);
  std::optional<Communicator> all(drill.all(kLong));
  drill.works(*all);
  Work work;
  if (!drill.is(0)) work = all->all_reduce(buffer, ReduceOp::kSum, {.async = true});
  const auto start = std::chrono::steady_clock::now();
  all.reset();
  drill.check(std::chrono::steady_clock::now() - start < kShort + kGrace,
              "the destructor waits for nobody");
  if (!drill.is(0)) {  // which of the two: whether another one was dropped before
    drill.fails("the operation", {ErrorCode::kAborted, ErrorCode::kPeerLost}, milliseconds(0),
                [&] { return work.wait(); });
  }
  drill.meet("dropped");
}

void closed_in_flight(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats(1 << 18);
  Work work = all.all_reduce(buffer, ReduceOp::kSum, {.async = true});
  drill.succeeds("close", [&] { return all.close(); });
  drill.check(work.test(), "close waits for what is under way");
  drill.succeeds("the operation", [&] { return work.wait(); });
  drill.check(buffer.values<float>()[1000] == 6.0F, "its result is right");
}

void closed_in_vain(Drill& drill) {
  Communicator all =
      drill.world().communicator(drill.backend(), {.timeout = milliseconds(2500)}).value();
  drill.works(all);
  TestBuffer& buffer = drill.floats();
  Work work;
  if (!drill.is(0)) {
    work = all.all_reduce(buffer, ReduceOp::kSum, {.timeout = kLong, .async = true});
    drill.fails("close", {ErrorCode::kTimeout}, milliseconds(2500), [&] { return all.close(); });
    drill.fails("the operation", {ErrorCode::kAborted, ErrorCode::kTimeout}, milliseconds(0),
                [&] { return work.wait(); });
  }
  drill.meet("closed");
}

void works_dropped(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats();
  for (int i = 0; i < 50; ++i) {
    (void)all.all_reduce(buffer, ReduceOp::kMax, {.async = true});
  }
  drill.succeeds("close", [&] { return all.close(); });
  drill.check(buffer.values<float>()[0] == static_cast<float>(drill.size()), "all were done");
}

void used_after_close(Drill& drill) {
  Communicator all = drill.all();
  drill.works(all);
  drill.succeeds("close", [&] { return all.close(); });
  drill.fails(
      "an operation", {ErrorCode::kAborted}, milliseconds(0), [&] { return all.barrier().wait(); },
      "closed");
  drill.succeeds("closing again", [&] { return all.close(); });
  drill.succeeds("abort of a closed one", [&] { return all.abort(); });
}

void moved_in_flight(Drill& drill) {
  std::vector<Communicator> places;
  places.push_back(drill.all(kLong, false, "one"));
  TestBuffer& buffer = drill.floats(1 << 16);
  Work work = places[0].all_reduce(buffer, ReduceOp::kSum, {.async = true});
  places.push_back(drill.all(kLong, false, "two"));  // moves the first
  drill.succeeds("the operation", [&] { return work.wait(); });
  for (Communicator& each : places)
    drill.works(each);
}

void many_in_turn(Drill& drill) {
  for (int i = 0; i < 25; ++i) {
    Communicator all = drill.all(kLong, false, "turn " + std::to_string(i));
    if (i % 5 == 0) drill.works(all);
    if (i % 2 == 0) drill.succeeds("close", [&] { return all.close(); });
  }
}

}  // namespace

std::vector<Cell> destroy_cells() {
  return {{"dropped with work in flight", 3, dropped_in_flight},
          {"closed with work in flight", 3, closed_in_flight},
          {"closed with work that cannot end", 3, closed_in_vain},
          {"works dropped", 3, works_dropped},
          {"used after close", 2, used_after_close},
          {"moved with work in flight", 3, moved_in_flight},
          {"25 communicators in turn", 2, many_in_turn}};
}

}  // namespace muster::comm::test
