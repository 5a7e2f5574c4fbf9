// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/stall_watch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "job/job_story.h"
#include "loop/loop_test.h"

using namespace muster;

namespace {

constexpr int64_t kSecond = 1'000'000;

int64_t unix_now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// A job of three ranks whose silence is as long as the test says.
struct StallWatchTest : LoopTest {
  JobStory story;
  bool hosting = true;
  std::vector<int64_t> quiet_us = {0, 0, 0};
  std::string odd_channel = "futex_wait_queue";  // of rank 1
  int64_t age_us = 0;  // of what is known of the ranks
  int looks = 0;
  int hurries = 0;
  std::vector<Stall> acted;
  std::unique_ptr<StallWatch> watch;

  void start(Milliseconds hang_timeout) {
    StallWatch::Parts parts;
    parts.state = [this]() -> const JobState& { return story.state; };
    parts.hosting = [this] { return hosting; };
    parts.samples = [this] { return samples(); };
    parts.hurry = [this] { ++hurries; };
    parts.store_waiters = [] { return std::vector<StoreWaiter>(); };
    parts.record = [this](EventBody body) { tell(std::move(body)); };
    parts.on_stall = [this](const Stall& stall) { acted.push_back(stall); };
    watch = std::make_unique<StallWatch>(loop, hang_timeout, std::move(parts));
    story.start(3).start_attempt(3);
    watch->observe(story.events[1]);
  }
  void tell(EventBody body) {
    story.say(std::move(body));
    watch->observe(story.last());
  }
  std::vector<RankSample> samples() {
    ++looks;
    std::vector<RankSample> samples;
    for (int rank = 0; rank < 3; ++rank) {
      RankSample& sample = samples.emplace_back();
      sample.rank = rank;
      sample.time_us = unix_now_us() - age_us;
      sample.alive_us = sample.time_us - quiet_us[static_cast<size_t>(rank)];
      sample.state = 'S';
      sample.wait_channel = rank == 1 ? odd_channel : "futex_wait_queue";
    }
    return samples;
  }
  const AttemptState& attempt() const { return *story.state.current(); }
  bool looks_again(int times = 2) {
    const int before = looks;
    return loop.run_until([&] { return looks >= before + times; }, Milliseconds(20'000));
  }
  bool stalls() {
    return loop.run_until([this] { return attempt().stall.has_value(); }, Milliseconds(20'000));
  }
};

}  // namespace

TEST_CASE_FIXTURE(StallWatchTest, "a job that stands still is recorded once, and acted upon once") {
  start(Milliseconds(4'000));
  quiet_us = {9 * kSecond, 5 * kSecond, 5 * kSecond};
  REQUIRE(stalls());
  CHECK(attempt().stall->kind == "all_idle");
  CHECK(attempt().stall->waiting == "0-2");
  const int64_t age_us = unix_now_us() - attempt().stall->since_us;
  CHECK(age_us >= 5 * kSecond);
  CHECK(age_us < 9 * kSecond);
  REQUIRE(looks_again());
  CHECK(acted.size() == 1);
  CHECK(hurries > 0);
}

TEST_CASE_FIXTURE(StallWatchTest, "when it looks another way that is told, and not acted upon") {
  start(Milliseconds(4'000));
  quiet_us = {5 * kSecond, 5 * kSecond, 5 * kSecond};
  REQUIRE(stalls());
  odd_channel = "pipe_read";
  REQUIRE(
      loop.run_until([this] { return attempt().stall->suspects == "1"; }, Milliseconds(20'000)));
  CHECK(attempt().stall->kind == "rank_missing");
  CHECK(acted.size() == 1);
}

TEST_CASE_FIXTURE(StallWatchTest, "who differs by the stacks is told once, and stays the suspect") {
  start(Milliseconds(4'000));
  quiet_us = {5 * kSecond, 5 * kSecond, 5 * kSecond};
  event::EvidenceSaved saved;
  saved.groups = {"ranks 0, 2: recv", "rank 1 differs: load"};
  CHECK(watch->look_closer({saved}).suspects.empty());  // it goes on
  REQUIRE(stalls());
  const int64_t since_us = attempt().stall->since_us;
  CHECK(watch->look_closer({saved}).suspects == std::vector<int>{1});
  CHECK(attempt().stall->suspects == "1");
  CHECK(attempt().stall->waiting == "0,2");
  CHECK(attempt().stall->since_us == since_us);
  const size_t told = story.events.size();
  REQUIRE(looks_again());
  CHECK(story.events.size() == told);
  CHECK(acted.size() == 1);
}

TEST_CASE_FIXTURE(StallWatchTest, "whoever is to act learns whether it lasts by newer looks") {
  start(Milliseconds(4'000));
  quiet_us = {5 * kSecond, 5 * kSecond, 5 * kSecond};
  bool confirmed = false;
  watch->confirm([&] { confirmed = true; });
  REQUIRE(stalls());
  CHECK_FALSE(confirmed);  // there was nothing to confirm
  SUBCASE("it does") {
    age_us = 10 * kSecond;  // what is known of the ranks is from before
    watch->confirm([&] { confirmed = true; });
    REQUIRE(looks_again(4));
    CHECK_FALSE(confirmed);
    age_us = 0;
    CHECK(loop.run_until([&] { return confirmed; }, Milliseconds(20'000)));
  }
  SUBCASE("it does not") {
    watch->confirm([&] { confirmed = true; });
    quiet_us[1] = 0;
    REQUIRE(loop.run_until([this] { return !attempt().stall; }, Milliseconds(20'000)));
    quiet_us[1] = 5 * kSecond;
    REQUIRE(stalls());
    REQUIRE(looks_again(4));
    CHECK_FALSE(confirmed);
  }
}

TEST_CASE_FIXTURE(StallWatchTest, "one that looks another way each time is not told for ever") {
  start(Milliseconds(4'000));
  quiet_us = {5 * kSecond, 5 * kSecond, 5 * kSecond};
  REQUIRE(stalls());
  for (int i = 0; i < 2 * StallWatch::kMaxTold; ++i) {
    odd_channel = i % 2 == 0 ? "pipe_read" : "futex_wait_queue";
    REQUIRE(looks_again(1));
  }
  const auto told = std::count_if(story.events.begin(), story.events.end(), [](const Event& one) {
    return std::holds_alternative<event::StallFound>(one.body);
  });
  CHECK(told == StallWatch::kMaxTold);
}

TEST_CASE_FIXTURE(StallWatchTest, "a sign of life ends it, and who gave it is named") {
  start(Milliseconds(4'000));
  quiet_us = {5 * kSecond, 5 * kSecond, 5 * kSecond};
  REQUIRE(stalls());
  quiet_us[2] = 0;
  REQUIRE(loop.run_until([this] { return !attempt().stall; }, Milliseconds(20'000)));
  const auto* over = std::get_if<event::StallOver>(&story.last().body);
  REQUIRE(over != nullptr);
  CHECK(over->how == "rank 2 goes on");
  CHECK(over->lasted_us >= 5 * kSecond);
  quiet_us[2] = 6 * kSecond;
  REQUIRE(stalls());
  CHECK(acted.size() == 2);
}

TEST_CASE_FIXTURE(StallWatchTest, "only where the coordinator is, and only while workers run") {
  hosting = false;
  start(Milliseconds(4'000));
  quiet_us = {5 * kSecond, 5 * kSecond, 5 * kSecond};
  CHECK_FALSE(loop.run_until([this] { return looks > 0; }, Milliseconds(2'500)));
  hosting = true;
  story.stops(0, 15);
  CHECK_FALSE(loop.run_until([this] { return looks > 0; }, Milliseconds(2'500)));
}

TEST_CASE_FIXTURE(StallWatchTest, "nobody is hurried while the job lives") {
  start(Milliseconds(4'000));
  quiet_us = {9 * kSecond, 9 * kSecond, kSecond};
  REQUIRE(looks_again());
  CHECK(hurries == 0);
  CHECK_FALSE(attempt().stall);
}

TEST_CASE_FIXTURE(StallWatchTest, "without a threshold it never looks") {
  start(Milliseconds(0));
  quiet_us = {5'000 * kSecond, 5'000 * kSecond, 5'000 * kSecond};
  CHECK_FALSE(loop.run_until([this] { return looks > 0; }, Milliseconds(2'500)));
}

TEST_CASE("looks are as many as the threshold needs, within limits") {
  CHECK(look_interval(Milliseconds(0)) == Milliseconds(10'000));
  CHECK(look_interval(Milliseconds(300'000)) == Milliseconds(10'000));
  CHECK(look_interval(Milliseconds(40'000)) == Milliseconds(5'000));
  CHECK(look_interval(Milliseconds(2'000)) == Milliseconds(1'000));
}
