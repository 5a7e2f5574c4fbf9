// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/heart.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "loop/loop_test.h"

namespace muster {

TEST_CASE("the clock's offset is that of the fastest round trip") {
  ClockOffset clock;
  CHECK(clock.us() == 0);
  clock.add(1'000, 51'500, 2'000);  // 1 ms there and back
  CHECK(clock.us() == 50'000);
  clock.add(10'000, 80'000, 90'000);  // slow, so that half of the trip says little
  CHECK(clock.us() == 50'000);
  clock.add(100'000, 160'100, 100'200);
  CHECK(clock.us() == 60'000);
  clock.add(500'000, 0, 400'000);  // our clock was set back: all that was measured is void
  CHECK(clock.us() == 0);
}

namespace {

struct HeartTest : LoopTest {
  std::vector<int64_t> beats;
  bool silent = false;
  std::unique_ptr<Heart> heart;

  void start(Milliseconds interval, int misses) {
    heart = std::make_unique<Heart>(
        loop, Heart::Rate{interval, misses}, [this](int64_t sent_us) { beats.push_back(sent_us); },
        [this] { silent = true; });
  }
};

}  // namespace

TEST_CASE_FIXTURE(HeartTest, "the first heartbeat goes out at once, the others by the clock") {
  start(Milliseconds(10), 1000);
  CHECK(beats.size() == 1);
  CHECK(run_until([&] { return beats.size() == 4; }));
}

TEST_CASE_FIXTURE(HeartTest, "silence is noticed when it has lasted, and not while echoes come") {
  start(Milliseconds(40), 3);
  auto last_echo = Clock::now();
  size_t echoed = 0;
  auto coordinator = Timer::repeat(loop, Milliseconds(5), [&] {
    if (echoed == beats.size()) return;
    heart->echoed(beats[echoed++]);
    last_echo = Clock::now();
  });
  REQUIRE(run_until([&] { return echoed == 8 || silent; }));
  CHECK(!silent);
  coordinator.reset();
  REQUIRE(run_until([&] { return silent; }));
  CHECK(Clock::now() - last_echo >= Milliseconds(120 - 40));
}

TEST_CASE_FIXTURE(HeartTest, "an echo counts from when its heartbeat was sent") {
  auto start_time = Clock::now();
  start(Milliseconds(1'000), 3);
  ::usleep(50'000);
  heart->echoed(beats[0]);
  CHECK(heart->last_known() - start_time < Milliseconds(50));
  heart->echoed(4711);  // never sent
  CHECK(heart->last_known() - start_time < Milliseconds(50));
}

TEST_CASE_FIXTURE(HeartTest, "a process that did not run listens before it speaks of silence") {
  start(Milliseconds(50), 2);
  bool heard = false;
  auto word = Timer::start(loop, Milliseconds(0), [&] {
    // Stopped for longer than the whole patience. What arrived meanwhile is read after the timers
    // of the next turn.
    ::usleep(400'000);
    loop.post([&] {
      loop.post([&] {
        heard = true;
        heart->echoed(beats.back());
      });
    });
  });
  REQUIRE(run_until([&] { return heard || silent; }));
  CHECK(heard);
  CHECK(!silent);
}

}  // namespace muster
