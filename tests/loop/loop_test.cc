// SPDX-License-Identifier: Apache-2.0
#include "loop/loop_test.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <vector>

#include "loop/fd_watch.h"
#include "loop/pool.h"
#include "loop/signal.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"

namespace muster {

namespace {

struct TestPipe {
  UniqueFd reader, writer;
  TestPipe() {
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    reader.reset(fds[0]);
    writer.reset(fds[1]);
  }
};

}  // namespace

TEST_CASE_FIXTURE(LoopTest, "what a timer brings about is seen before the loop waits again") {
  bool fired = false;
  const auto timer = Timer::start(loop, Milliseconds(0), [&] { fired = true; });
  const Clock::time_point start = Clock::now();
  CHECK(run_until([&] { return fired; }, Milliseconds(5'000)));
  CHECK(Clock::now() - start < Milliseconds(4'000));
}

TEST_CASE_FIXTURE(LoopTest, "a timer fires once and its owner may drop it inside its callback") {
  int fired = 0;
  Owned<Timer> timer;
  timer = Timer::start(loop, Milliseconds(1), [&] {
    ++fired;
    timer.reset();
  });
  CHECK(run_until([&] { return fired == 1; }));
}

TEST_CASE_FIXTURE(LoopTest, "a dropped timer is silent") {
  bool fired = false;
  Owned<Timer> dropped = Timer::start(loop, Milliseconds(0), [&] { fired = true; });
  bool later = false;
  Owned<Timer> timer = Timer::start(loop, Milliseconds(5), [&] { later = true; });
  dropped.reset();
  CHECK(run_until([&] { return later; }));
  CHECK_FALSE(fired);
}

TEST_CASE_FIXTURE(LoopTest, "descriptors are reported in the order in which they became ready") {
  constexpr int kPipes = 20;
  std::vector<TestPipe> pipes(kPipes);
  std::vector<Owned<FdWatch>> watches;
  std::vector<int> order;
  for (int i = 0; i < kPipes; ++i) {
    auto watch = FdWatch::start(loop, pipes[i].reader.get(), FdWatch::kReadable, [&, i](int) {
      order.push_back(i);
      watches[i]->set_interest(0);
    });
    REQUIRE(watch.has_value());
    watches.push_back(std::move(*watch));
  }
  bool armed = false;  // libuv registers with epoll in the next turn only
  loop.post([&] { armed = true; });
  REQUIRE(run_until([&] { return armed; }));
  std::vector<int> expected;
  for (int i = kPipes - 1; i >= 0; --i)
    expected.push_back((i * 7) % kPipes);
  for (int i : expected)
    REQUIRE(write(pipes[i].writer.get(), "x", 1) == 1);
  CHECK(run_until([&] { return order.size() == expected.size(); }));
  CHECK(order == expected);
}

TEST_CASE_FIXTURE(LoopTest, "work runs off the loop and its end comes back to it") {
  pid_t worker_thread = 0;
  bool done = false;
  run_in_pool(
      loop, [&] { worker_thread = gettid(); }, [&] { done = true; });
  CHECK(run_until([&] { return done; }));
  CHECK(worker_thread != gettid());
}

TEST_CASE_FIXTURE(LoopTest, "a posted task runs even when nothing else keeps the loop alive") {
  bool ran = false;
  loop.post([&] { ran = true; });
  loop.run();
  CHECK(ran);
}

TEST_CASE_FIXTURE(LoopTest, "a signal reaches its watch") {
  int seen = 0;
  Owned<SignalWatch> watch = SignalWatch::start(loop, SIGUSR1, [&] { ++seen; });
  raise(SIGUSR1);
  CHECK(run_until([&] { return seen == 1; }));
}

}  // namespace muster
