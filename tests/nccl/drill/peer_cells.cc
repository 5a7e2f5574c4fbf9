// SPDX-License-Identifier: Apache-2.0
// The last rank dies, or stops, while the others wait for it.
#include "nccl/drill/drill.h"

namespace muster::comm::test {
namespace {

using Operation = std::function<Work(Communicator&, TestBuffer&, int last)>;

Work all_reduce(Communicator& all, TestBuffer& buffer, int) {
  return all.all_reduce(buffer);
}
Work broadcast(Communicator& all, TestBuffer& buffer, int last) {
  return all.broadcast(buffer, last);
}
Work barrier(Communicator& all, TestBuffer&, int) {
  return all.barrier();
}
Work recv(Communicator& all, TestBuffer& buffer, int last) {
  return all.recv(buffer, last);
}
Work exchange(Communicator& all, TestBuffer& buffer, int last) {
  const std::vector<P2p> both{P2p::send(buffer.buffer(), last), P2p::recv(buffer.buffer(), last)};
  return all.batch(both);
}
Work asynchronous(Communicator& all, TestBuffer& buffer, int) {
  return all.all_reduce(buffer, ReduceOp::kSum, {.async = true});
}

// The others learn it from the connection: long before the time is over.
void dead(Drill& drill, const Operation& operation) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats(1 << 18);
  drill.works(all);
  const int last = drill.size() - 1;
  drill.meet("before");
  if (drill.is(last)) drill.die();
  drill.fails("the operation", {ErrorCode::kPeerLost}, milliseconds(5000),
              [&] { return operation(all, buffer, last).wait(); });
  drill.fails("another one", {ErrorCode::kPeerLost}, milliseconds(0),
              [&] { return all.barrier().wait(); });
  drill.succeeds("close", [&] { return all.close(); });
}

void stopped(Drill& drill, const Operation& operation) {
  Communicator all = drill.all(kShort);
  TestBuffer& buffer = drill.floats(1 << 21);  // 8 MiB: no socket takes it while nobody reads
  const int last = drill.size() - 1;
  drill.meet("before");
  if (drill.is(last)) drill.stop();
  // Whoever gave up first has closed: that is a lost peer to the others.
  drill.fails("the operation", {ErrorCode::kTimeout, ErrorCode::kPeerLost}, kShort,
              [&] { return operation(all, buffer, last).wait(); });
  drill.succeeds("close", [&] { return all.close(); });
}

void dead_in_all_reduce(Drill& drill) {
  dead(drill, all_reduce);
}
void dead_in_broadcast(Drill& drill) {
  dead(drill, broadcast);
}
void dead_in_barrier(Drill& drill) {
  dead(drill, barrier);
}
void dead_in_recv(Drill& drill) {
  dead(drill, recv);
}
void dead_in_exchange(Drill& drill) {
  dead(drill, exchange);
}
void dead_in_asynchronous(Drill& drill) {
  dead(drill, asynchronous);
}
void stopped_in_all_reduce(Drill& drill) {
  stopped(drill, all_reduce);
}
void stopped_in_broadcast(Drill& drill) {
  stopped(drill, broadcast);
}
void stopped_in_barrier(Drill& drill) {
  stopped(drill, barrier);
}
void stopped_in_recv(Drill& drill) {
  stopped(drill, recv);
}
void stopped_in_exchange(Drill& drill) {
  stopped(drill, exchange);
}
void stopped_in_asynchronous(Drill& drill) {
  stopped(drill, asynchronous);
}

// It ends well, but does not wait for the others.
void leaves_early(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats();
  drill.meet("before");
  if (drill.is(drill.size() - 1)) return;
  if (drill.backend() == Backend::kNccl) return;  // waits for ever there: abort is the way out
  drill.fails("the operation", {ErrorCode::kPeerLost}, milliseconds(5000),
              [&] { return all.all_reduce(buffer).wait(); });
}

void dead_then_shrunk(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats();
  drill.works(all);
  const int last = drill.size() - 1;
  drill.meet("before");
  if (drill.is(last)) drill.die();
  drill.fails("the operation", {ErrorCode::kPeerLost}, milliseconds(5000),
              [&] { return all.all_reduce(buffer).wait(); });
  Communicator rest =
      all.shrink(std::vector<int>{last}, {.timeout = kLong, .name = "the rest"}).value();
  drill.check(rest.size() == last, "the rest are all but the dead");
  drill.works(rest);
  drill.succeeds("close", [&] { return rest.close(); });
}

}  // namespace

std::vector<Cell> peer_cells() {
  return {{"peer dead in all_reduce", 3, dead_in_all_reduce, End::kKilled},
          {"peer dead in broadcast", 3, dead_in_broadcast, End::kKilled},
          {"peer dead in barrier", 3, dead_in_barrier, End::kKilled},
          {"peer dead in recv", 2, dead_in_recv, End::kKilled},
          {"peer dead in an exchange", 2, dead_in_exchange, End::kKilled},
          {"peer dead in an asynchronous operation", 3, dead_in_asynchronous, End::kKilled},
          {"peer stopped in all_reduce", 3, stopped_in_all_reduce, End::kStopped},
          {"peer stopped in broadcast", 3, stopped_in_broadcast, End::kStopped},
          {"peer stopped in barrier", 3, stopped_in_barrier, End::kStopped},
          {"peer stopped in recv", 2, stopped_in_recv, End::kStopped},
          {"peer stopped in an exchange", 2, stopped_in_exchange, End::kStopped},
          {"peer stopped in an asynchronous operation", 3, stopped_in_asynchronous, End::kStopped},
          {"peer leaves early", 3, leaves_early},
          {"peer dead, then shrunk", 3, dead_then_shrunk, End::kKilled}};
}

}  // namespace muster::comm::test
