// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/heart.h"

#include <doctest/doctest.h>
#include <unistd.h>

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

TEST_CASE_FIXTURE(LoopTest, "the first heartbeat goes out at once, the others by the clock") {
  int beats = 0;
  Heart heart(
      loop, {Milliseconds(10), 100}, [&] { ++beats; }, [] { FAIL("silence"); });
  CHECK(beats == 1);
  CHECK(run_until([&] { return beats == 4; }));
}

TEST_CASE_FIXTURE(LoopTest, "silence is noticed when it has lasted, and not while words come") {
  bool silent = false;
  int words = 0;
  auto start = Clock::now();
  Heart heart(
      loop, {Milliseconds(40), 3}, [] {}, [&] { silent = true; });
  auto talk = Timer::repeat(loop, Milliseconds(10), [&] {
    heart.heard();
    ++words;
  });
  REQUIRE(run_until([&] { return words == 25 || silent; }));
  CHECK(!silent);
  talk.reset();
  REQUIRE(run_until([&] { return silent; }));
  CHECK(Clock::now() - start >= Milliseconds(250 + 120 - 1));
}

TEST_CASE_FIXTURE(LoopTest,
                  "a process that did not run itself listens before it speaks of silence") {
  bool silent = false;
  bool heard = false;
  Heart heart(
      loop, {Milliseconds(50), 2}, [] {}, [&] { silent = true; });
  auto word = Timer::start(loop, Milliseconds(0), [&] {
    // Stopped for longer than the whole patience. What arrived meanwhile is read after the timers
    // of the next turn.
    ::usleep(400'000);
    loop.post([&] {
      loop.post([&] {
        heard = true;
        heart.heard();
      });
    });
  });
  REQUIRE(run_until([&] { return heard || silent; }));
  CHECK(heard);
  CHECK(!silent);
}

}  // namespace muster
