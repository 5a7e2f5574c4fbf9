// SPDX-License-Identifier: Apache-2.0
// One rank is absent from one operation, of each kind: whoever needs it gives up in time, names
// what it was in, and the process lives. Who needs whom is the operation's own matter: the roots of
// reduce and gather need all, all need the roots of broadcast and scatter.
#include "nccl/drill/drill.h"

namespace muster::comm::test {
namespace {

using Operation = std::function<Work(Communicator&, TestBuffer& small, TestBuffer& large)>;

constexpr size_t kCount = 1 << 18;
constexpr int kRanks = 3;

// `absent` does not come. `all_wait`: every other rank must fail; otherwise only `observer`.
void absent_from(Drill& drill, const char* name, int absent, int observer, bool all_wait,
                 const Operation& operation) {
  Communicator all = drill.all(kShort);
  TestBuffer& small = drill.floats(kCount);
  TestBuffer& large = drill.floats(kCount * kRanks);
  if (!drill.is(absent)) {
    const auto call = [&] { return operation(all, small, large).wait(); };
    if (drill.is(observer) || all_wait) {
      drill.fails(name, {ErrorCode::kTimeout, ErrorCode::kPeerLost}, kShort, call, name);
    } else {
      (void)call();  // may end well: its part needs nobody who is absent
    }
  }
  drill.meet("gave up");
}

void broadcast(Drill& drill) {
  absent_from(drill, "broadcast", 0, 1, true,
              [](auto& all, auto& small, auto&) { return all.broadcast(small, 0); });
}
void reduce(Drill& drill) {
  absent_from(drill, "reduce", 2, 0, false, [](auto& all, auto& small, auto&) {
    return all.reduce(small, small, ReduceOp::kSum, 0);
  });
}
void all_reduce(Drill& drill) {
  absent_from(drill, "all_reduce", 2, 0, true,
              [](auto& all, auto& small, auto&) { return all.all_reduce(small); });
}
void scatter(Drill& drill) {
  absent_from(drill, "scatter", 0, 1, true,
              [](auto& all, auto& small, auto& large) { return all.scatter(large, small, 0); });
}
void gather(Drill& drill) {
  absent_from(drill, "gather", 2, 0, false,
              [](auto& all, auto& small, auto& large) { return all.gather(small, large, 0); });
}
void all_gather(Drill& drill) {
  absent_from(drill, "all_gather", 2, 0, true,
              [](auto& all, auto& small, auto& large) { return all.all_gather(small, large); });
}
void reduce_scatter(Drill& drill) {
  absent_from(drill, "reduce_scatter", 2, 0, true,
              [](auto& all, auto& small, auto& large) { return all.reduce_scatter(large, small); });
}
void all_to_all(Drill& drill) {
  TestBuffer& out = drill.floats(kCount * kRanks);
  absent_from(drill, "all_to_all", 2, 0, true,
              [&](auto& all, auto&, auto& large) { return all.all_to_all(large, out); });
}
void barrier(Drill& drill) {
  absent_from(drill, "barrier", 2, 0, true, [](auto& all, auto&, auto&) { return all.barrier(); });
}
void send(Drill& drill) {
  absent_from(drill, "send", 2, 0, false, [&](auto& all, auto&, auto& large) {
    return drill.is(0) ? all.send(large, 2) : Work();
  });
}
void recv(Drill& drill) {
  absent_from(drill, "recv", 2, 0, false, [&](auto& all, auto& small, auto&) {
    return drill.is(0) ? all.recv(small, 2) : Work();
  });
}
void asynchronous(Drill& drill) {
  absent_from(drill, "all_reduce", 2, 0, true, [](auto& all, auto& small, auto&) {
    return all.all_reduce(small, ReduceOp::kSum, {.async = true});
  });
}

// A wait that is shorter than the operation's time leaves it running.
void short_wait(Drill& drill) {
  Communicator all = drill.all(kLong);
  drill.works(all);
  TestBuffer& buffer = drill.floats();
  if (drill.is(0)) drill.meet("they gave up once");
  Work work = all.all_reduce(buffer, ReduceOp::kSum, {.async = true});
  if (!drill.is(0)) {
    drill.fails("a short wait", {ErrorCode::kTimeout}, milliseconds(200),
                [&] { return work.wait(milliseconds(200)); });
    drill.check(!work.test(), "it is still going on");
    drill.meet("they gave up once");
  }
  drill.succeeds("a long one", [&] { return work.wait(); });
  drill.works(all);
}

// An operation's own time, shorter than its communicator's.
void own_time(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats();
  if (!drill.is(0)) {
    drill.fails("all_reduce", {ErrorCode::kTimeout, ErrorCode::kPeerLost}, milliseconds(700), [&] {
      return all.all_reduce(buffer, ReduceOp::kSum, {.timeout = milliseconds(700)}).wait();
    });
  }
  drill.meet("gave up");
}

}  // namespace

std::vector<Cell> timeout_cells() {
  return {{"timeout in broadcast", kRanks, broadcast},
          {"timeout in reduce", kRanks, reduce},
          {"timeout in all_reduce", kRanks, all_reduce},
          {"timeout in scatter", kRanks, scatter},
          {"timeout in gather", kRanks, gather},
          {"timeout in all_gather", kRanks, all_gather},
          {"timeout in reduce_scatter", kRanks, reduce_scatter},
          {"timeout in all_to_all", kRanks, all_to_all},
          {"timeout in barrier", kRanks, barrier},
          {"timeout in send", kRanks, send},
          {"timeout in recv", kRanks, recv},
          {"timeout in an asynchronous operation", kRanks, asynchronous},
          {"a short wait leaves the operation running", kRanks, short_wait},
          {"an operation's own time", kRanks, own_time}};
}

}  // namespace muster::comm::test
