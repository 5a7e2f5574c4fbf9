// SPDX-License-Identifier: Apache-2.0
// Abort, from any thread, whatever is under way. In these cells rank 0 never enters the operation
// that the others wait in, so that nothing but the abort can end it.
#include <thread>

#include "nccl/drill/drill.h"

namespace muster::comm::test {
namespace {

constexpr auto kAborted = ErrorCode::kAborted;
constexpr auto kPeerLost = ErrorCode::kPeerLost;
constexpr milliseconds kSoon{300};  // until the abort comes
constexpr milliseconds kAtOnce{0};

// Calls `abort` on another thread, a little after this one has begun to wait: that it has cannot be
// seen from outside. The check of the abort itself is made afterwards, in this thread.
class Aborter {
 public:
  Aborter(Drill& drill, const Drill::Call& abort)
      : drill_(drill), thread_([this, abort] {
          std::this_thread::sleep_for(kSoon);
          const auto start = std::chrono::steady_clock::now();
          result_ = abort();
          took_ = std::chrono::steady_clock::now() - start;
        }) {}
  Aborter(const Aborter&) = delete;
  Aborter& operator=(const Aborter&) = delete;
  ~Aborter() {
    thread_.join();
    drill_.succeeds("the abort", [&] { return result_; });
    drill_.check(took_ < std::chrono::seconds(6), "the abort returns by its deadline");
  }

 private:
  Drill& drill_;
  Result<void> result_;
  std::chrono::steady_clock::duration took_{};
  std::thread thread_;
};

// All but rank 0 wait in `operation` and are aborted there; afterwards they fail at once.
void aborted_in(Drill& drill, const std::function<Work(Communicator&, Buffer)>& operation) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats(1 << 18);
  if (!drill.is(0)) {
    {
      const Aborter aborter(drill, [&] { return all.abort("the drill says so"); });
      drill.fails(
          "the operation", {kAborted}, kSoon,
          [&] { return operation(all, buffer.buffer()).wait(); }, "the drill says so");
    }
    drill.fails("another one", {kAborted}, kAtOnce, [&] { return all.barrier().wait(); });
  }
  drill.meet("aborted");
  drill.succeeds("closing after an abort", [&] { return drill.is(0) ? all.abort() : all.close(); });
}

void in_all_reduce(Drill& drill) {
  aborted_in(drill, [](Communicator& all, Buffer buffer) { return all.all_reduce(buffer); });
}
void in_broadcast(Drill& drill) {
  aborted_in(drill, [](Communicator& all, Buffer buffer) { return all.broadcast(buffer, 0); });
}
void in_barrier(Drill& drill) {
  aborted_in(drill, [](Communicator& all, Buffer) { return all.barrier(); });
}
void in_recv(Drill& drill) {
  aborted_in(drill, [](Communicator& all, Buffer buffer) { return all.recv(buffer, 0); });
}
void in_send(Drill& drill) {
  aborted_in(drill, [](Communicator& all, Buffer buffer) {
    // More than any socket takes while nobody reads.
    return all.batch(std::vector<P2p>{P2p::send(buffer, 0), P2p::recv(buffer, 0)});
  });
}
void in_asynchronous(Drill& drill) {
  aborted_in(drill, [](Communicator& all, Buffer buffer) {
    return all.all_reduce(buffer, ReduceOp::kSum, {.async = true});
  });
}

void while_idle(Drill& drill) {
  Communicator all = drill.all();
  drill.works(all);
  drill.succeeds("abort", [&] { return all.abort(); });
  drill.fails("an operation", {kAborted}, kAtOnce, [&] { return all.barrier().wait(); });
  drill.succeeds("close", [&] { return all.close(); });
}

void from_two_threads(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats();
  if (drill.is(0)) return drill.meet("aborted");
  {
    const Aborter one(drill, [&] { return all.abort("one"); });
    const Aborter other(drill, [&] { return all.abort("other"); });
    drill.fails("the operation", {kAborted}, kSoon, [&] { return all.all_reduce(buffer).wait(); });
  }
  drill.meet("aborted");
}

// Many operations wait in the background, and a thread waits for the last of them.
void with_a_queue(Drill& drill) {
  Communicator all = drill.all(kLong);
  drill.works(all);
  std::vector<TestBuffer*> buffers;
  std::vector<Work> works;
  if (!drill.is(0)) {
    // Made first: filling device memory would wait for the operation that hangs.
    for (int i = 0; i < 20; ++i)
      buffers.push_back(&drill.floats(1000));
    for (TestBuffer* buffer : buffers) {
      works.push_back(all.all_reduce(*buffer, ReduceOp::kSum, {.async = true}));
    }
    {
      const Aborter aborter(drill, [&] { return all.abort(); });
      drill.fails("the last one", {kAborted}, kSoon, [&] { return works.back().wait(); });
    }
    for (Work& work : works) {
      drill.fails("each of them", {kAborted}, kAtOnce, [&] { return work.wait(); });
    }
  }
  drill.meet("aborted");
}

// One rank gives up; those who wait for it learn it from the broken connection, not by time.
void by_one_rank_only(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats(1 << 18);
  if (drill.is(0)) {
    drill.succeeds("abort", [&] { return all.abort(); });
  } else if (drill.backend() == Backend::kGloo) {
    drill.fails("the operation", {ErrorCode::kPeerLost}, milliseconds(5000),
                [&] { return all.all_reduce(buffer).wait(); });
  } else {  // NCCL's peers hear nothing of an abort: each has to
    const Aborter aborter(drill, [&] { return all.abort(); });
    drill.fails("the operation", {kAborted, ErrorCode::kPeerLost}, kSoon,
                [&] { return all.all_reduce(buffer).wait(); });
  }
  drill.meet("aborted");
}

void revoked(Drill& drill) {
  Communicator all = drill.all(kLong);
  TestBuffer& buffer = drill.floats();
  if (!drill.is(0)) {
    const Aborter aborter(drill, [&] { return all.revoke(); });
    drill.fails("the operation", {kAborted, kPeerLost}, kSoon,
                [&] { return all.all_reduce(buffer).wait(); });
  } else {
    drill.succeeds("revoke", [&] { return all.revoke(); });
  }
  std::vector<int> everybody(static_cast<size_t>(drill.size()));
  for (int i = 0; i < drill.size(); ++i)
    everybody[static_cast<size_t>(i)] = i;
  Communicator again = all.new_group(everybody, {.timeout = kLong, .name = "again"}).value();
  drill.works(again);
  drill.succeeds("close", [&] { return again.close(); });
}

// Both wait, each in a thread of its own; all are stopped before any is freed, in whatever order.
void two_together(Drill& drill) {
  Communicator first = drill.all(kLong, false, "first");
  Communicator second = drill.all(kLong, false, "second");
  TestBuffer& one = drill.floats();
  TestBuffer& two = drill.floats();
  if (drill.is(0)) return drill.meet("aborted");
  std::vector<Communicator*> both{&first, &second};
  if (drill.rank() % 2 == 0) std::swap(both[0], both[1]);
  {
    const Aborter aborter(drill, [&] { return Communicator::abort_all(both, "together"); });
    Result<void> other;
    std::thread waiting([&] { other = second.all_reduce(two).wait(); });
    drill.fails("the first", {kAborted, kPeerLost}, kSoon,
                [&] { return first.all_reduce(one).wait(); });
    waiting.join();
    drill.fails("the second", {kAborted, kPeerLost}, kAtOnce, [&] { return other; });
  }
  drill.meet("aborted");
}

void with_its_group(Drill& drill) {
  Communicator all = drill.all(kLong);
  Communicator half = all.split(drill.rank() % 2, 0, {.timeout = kLong}).value().value();
  TestBuffer& buffer = drill.floats();
  if (drill.is(0)) return drill.meet("aborted");
  const std::vector<Communicator*> both{&half, &all};
  {
    const Aborter aborter(drill, [&] { return Communicator::abort_all(both); });
    drill.fails("the operation", {kAborted, kPeerLost}, kSoon,
                [&] { return all.all_reduce(buffer).wait(); });
  }
  drill.fails("one of the half", {kAborted, kPeerLost}, kAtOnce,
              [&] { return half.barrier().wait(); });
  drill.meet("aborted");
}

}  // namespace

std::vector<Cell> abort_cells() {
  return {{"abort in all_reduce", 2, in_all_reduce},
          {"abort in broadcast", 2, in_broadcast},
          {"abort in barrier", 2, in_barrier},
          {"abort in recv", 2, in_recv},
          {"abort in send", 2, in_send},
          {"abort in an asynchronous operation", 2, in_asynchronous},
          {"abort while idle", 2, while_idle},
          {"abort from two threads", 2, from_two_threads},
          {"abort with a queue of operations", 2, with_a_queue},
          {"abort by one rank only", 3, by_one_rank_only},
          {"revoke, then a new group of the same", 3, revoked},
          {"two communicators aborted together", 3, two_together},
          {"a communicator and its group aborted together", 4, with_its_group}};
}

}  // namespace muster::comm::test
