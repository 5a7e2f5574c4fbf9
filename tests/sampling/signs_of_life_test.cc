// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/signs_of_life.h"

#include <doctest/doctest.h>
#include <unistd.h>

using namespace muster;

namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kLook = 10 * kSecond;

uint64_t ticks(double seconds) {
  return static_cast<uint64_t>(seconds * static_cast<double>(sysconf(_SC_CLK_TCK)));
}

// Of a worker that has run for a while.
ProcUsage usage() {
  ProcUsage usage;
  usage.found = true;
  usage.start_time = 77;
  usage.cpu_ticks = 10'000;
  usage.system_ticks = 500;
  usage.faults = 100'000;
  usage.members = 5;
  return usage;
}

struct Use {
  double cpu_s = 0;
  double system_s = 0;
  uint64_t faults = 0;
};

Activity by_use(const Use& use, int64_t elapsed_us = kLook) {
  ProcUsage after = usage();
  after.cpu_ticks += ticks(use.cpu_s);
  after.system_ticks += ticks(use.system_s);
  after.faults += use.faults;
  return activity_by_use(usage(), after, elapsed_us);
}

Activity in_detail(Activity by_use, uint64_t io_bytes, uint64_t switches) {
  const LifeDetail before{5'000'000, 9'000};
  return activity_in_detail(
      by_use, before, LifeDetail{before.io_bytes + io_bytes, before.switches + switches}, kLook);
}

}  // namespace

TEST_CASE("threads that poll a hundred times a second are no sign of life") {
  CHECK(by_use({}) == Activity::kNone);
  CHECK(by_use({0.1, 0.05, 20}) == Activity::kNone);  // 1 % of a core
  // In a short look a tick or two say nothing either.
  CHECK(by_use({0.03, 0.02, 0}, kSecond) == Activity::kNone);
  CHECK(in_detail(Activity::kNone, 10'000, 100) == Activity::kNone);
}

TEST_CASE("a little work in one look is enough") {
  CHECK(by_use({0.4, 0.3, 0}) == Activity::kAlive);
  CHECK(by_use({0, 0, 5'000}) == Activity::kAlive);
  CHECK(in_detail(Activity::kNone, 100'000, 0) == Activity::kAlive);
  CHECK(in_detail(Activity::kNone, 0, 1'000) == Activity::kAlive);
}

TEST_CASE("a core in use and nothing else is told apart") {
  CHECK(by_use({10, 0.01, 3}) == Activity::kSpins);
  CHECK(in_detail(Activity::kSpins, 500, 3) == Activity::kSpins);
  CHECK(by_use({1.2, 0.01, 3}) == Activity::kSpins);
  // Too little to be sure that it is not a thread that polls.
  CHECK(by_use({0.6, 0.01, 3}) == Activity::kBetween);
  CHECK(in_detail(Activity::kBetween, 500, 3) == Activity::kBetween);
  CHECK(in_detail(Activity::kBetween, 0, 200) == Activity::kAlive);
  // A program that computes asks the kernel for something now and then.
  CHECK(by_use({10, 0.01, 300}) == Activity::kAlive);
  CHECK(by_use({10, 1, 0}) == Activity::kAlive);
  CHECK(in_detail(Activity::kSpins, 30'000, 0) == Activity::kAlive);
  CHECK(in_detail(Activity::kSpins, 0, 200) == Activity::kAlive);
}

TEST_CASE("the state of the main thread tells who computes") {
  CHECK(activity_by_state(Activity::kSpins, 'R', 'S') == Activity::kSpins);
  CHECK(activity_by_state(Activity::kSpins, 'S', 'R') == Activity::kSpinsBeside);
  CHECK(activity_by_state(Activity::kSpins, 't', 'R') == Activity::kBetween);
  CHECK(activity_by_state(Activity::kNone, 'S', 'R') == Activity::kNone);
  CHECK(activity_by_state(Activity::kBetween, 'S', 'S') == Activity::kBetween);
  CHECK(activity_by_state(Activity::kAlive, 'S', 'S') == Activity::kAlive);
  // However little it gets, what is always ready to run computes; a thread that polls may be once.
  CHECK(activity_by_state(Activity::kNone, 'R', 'S') == Activity::kBetween);
  CHECK(activity_by_state(Activity::kNone, 'R', 'R') == Activity::kSpins);
  CHECK(activity_by_state(Activity::kBetween, 'R', 'R') == Activity::kSpins);
}

TEST_CASE("what cannot be compared is taken for life") {
  ProcUsage other = usage();
  other.start_time = 78;
  CHECK(activity_by_use(usage(), other, kLook) == Activity::kAlive);
  other = usage();
  other.members = 6;  // a child has come
  CHECK(activity_by_use(usage(), other, kLook) == Activity::kAlive);
  other = usage();
  other.found = false;
  CHECK(activity_by_use(usage(), other, kLook) == Activity::kAlive);
  other = usage();
  other.cpu_ticks -= 1;
  CHECK(activity_by_use(usage(), other, kLook) == Activity::kAlive);
  CHECK(activity_by_use(usage(), usage(), 0) == Activity::kAlive);
  CHECK(activity_in_detail(Activity::kNone, LifeDetail(), std::nullopt, kLook) == Activity::kAlive);
  CHECK(activity_in_detail(Activity::kNone, LifeDetail{5, 5}, LifeDetail{4, 5}, kLook) ==
        Activity::kAlive);
  // But not what only was not looked at before.
  CHECK(activity_in_detail(Activity::kNone, std::nullopt, LifeDetail{5, 5}, kLook) ==
        Activity::kNone);
}

TEST_CASE("quiet time adds up until there is a sign of life") {
  LifeTrack life;
  life.saw(Activity::kAlive, kLook, 2 * kLook);
  CHECK(life.quiet_us() == 0);
  life.saw(Activity::kNone, kLook, 2 * kLook);
  life.saw(Activity::kBetween, kLook, 2 * kLook);
  CHECK(life.quiet_us() == 2 * kLook);
  CHECK_FALSE(life.spins());
  life.saw(Activity::kAlive, kLook, 2 * kLook);
  CHECK(life.quiet_us() == 0);
  for (int look = 0; look < 30; ++look)
    life.saw(Activity::kSpins, kLook, 2 * kLook);
  CHECK(life.quiet_us() == 30 * kLook);
  CHECK(life.spins());
  life.saw(Activity::kAlive, kLook, 2 * kLook);
  CHECK(life.quiet_us() == 0);
  CHECK_FALSE(life.spins());
}

TEST_CASE("who computes in bursts and else waits lives, though it asks for nothing") {
  LifeTrack life;
  for (int burst = 0; burst < 20; ++burst) {
    for (int look = 0; look < 10; ++look) {
      life.saw(Activity::kNone, kLook, 2 * kLook);
      CHECK(life.quiet_us() < 11 * kLook);
    }
    life.saw(Activity::kBetween, kLook, 2 * kLook);
    life.saw(Activity::kSpins, kLook, 2 * kLook);
    CHECK(life.quiet_us() == 0);
  }
  // The end of a burst too.
  life.saw(Activity::kSpins, kLook, 2 * kLook);
  CHECK(life.quiet_us() == kLook);
  life.saw(Activity::kNone, kLook, 2 * kLook);
  CHECK(life.quiet_us() == 0);
  CHECK_FALSE(life.spins());
}

TEST_CASE("who rests too short for a look of its own rests nevertheless") {
  LifeTrack life;
  for (int burst = 0; burst < 20; ++burst) {
    life.saw(Activity::kSpins, kLook, 2 * kLook);
    life.saw(Activity::kSpins, kLook, 2 * kLook);
    life.saw(Activity::kSpinsBeside, kLook, 2 * kLook);  // it had computed and slept by then
    CHECK(life.quiet_us() == 0);
  }
  // A thread that spins while the main one waits does so for ever.
  for (int look = 0; look < 30; ++look)
    life.saw(Activity::kSpinsBeside, kLook, 2 * kLook);
  CHECK(life.quiet_us() == 30 * kLook);
  CHECK(life.spins());
}

TEST_CASE("threads that poll now more and now less do not live by that") {
  LifeTrack life;
  life.saw(Activity::kAlive, kLook, 2 * kLook);
  for (int look = 0; look < 30; ++look)
    life.saw(look % 3 == 0 ? Activity::kBetween : Activity::kNone, kLook, 2 * kLook);
  CHECK(life.quiet_us() == 30 * kLook);
  CHECK_FALSE(life.spins());
}

TEST_CASE("a loop that gets little of a busy processor now and then goes on spinning") {
  LifeTrack life;
  life.saw(Activity::kAlive, kLook, 2 * kLook);
  for (int look = 0; look < 30; ++look)
    life.saw(look % 3 == 0 ? Activity::kBetween : Activity::kSpins, kLook, 2 * kLook);
  CHECK(life.quiet_us() == 30 * kLook);
  CHECK(life.spins());
}

TEST_CASE("time in which nobody looked is not held against a worker") {
  LifeTrack life;
  life.saw(Activity::kNone, 3'600 * kSecond, 2 * kLook);
  CHECK(life.quiet_us() == 2 * kLook);
  life.saw(Activity::kNone, -kSecond, 2 * kLook);
  CHECK(life.quiet_us() == 2 * kLook);
}
