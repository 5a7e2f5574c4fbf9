// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/stall_facts.h"

#include <doctest/doctest.h>

#include "job/job_story.h"

using namespace muster;

namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kNow = 1'796'000'000 * kSecond;

// Ranks that have been quiet for six minutes.
struct QuietJob {
  JobStory story;
  std::vector<RankSample> samples;
  std::vector<StoreWaiter> waiters;
  std::vector<RankSigns> signs;
  Clock::time_point now = Clock::now();

  explicit QuietJob(int ranks) {
    story.start(ranks).start_attempt(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      RankSample& sample = samples.emplace_back();
      sample.rank = rank;
      sample.time_us = kNow - kSecond;
      sample.alive_us = sample.time_us - 360 * kSecond;
      sample.state = 'S';
      sample.wait_channel = "futex_wait_queue";
    }
  }
  StallFacts facts() {
    return stall_facts({story.state, samples, waiters, kNow, now, 300 * kSecond, 25 * kSecond},
                       signs);
  }
  void wait(int rank, const std::string& key) {
    StoreWaiter& waiter = waiters.emplace_back();
    waiter.pid = rank < 0 ? 0 : static_cast<uint32_t>(story.pid(rank));
    waiter.since = now - std::chrono::seconds(350);
    waiter.keys = {key};
  }
};

}  // namespace

TEST_CASE("signs are as old as the look that saw them") {
  QuietJob job(2);
  job.facts();
  REQUIRE(job.signs.size() == 2);
  CHECK(job.signs[0].known);
  CHECK(job.signs[0].running);
  CHECK(job.signs[0].quiet_us == 360 * kSecond);
  CHECK(job.signs[0].wait_channel == "futex_wait_queue");
  CHECK(job.signs[0].host.empty());
  job.samples[1].time_us = kNow - 26 * kSecond;
  job.facts();
  CHECK_FALSE(job.signs[1].known);
  job.samples.pop_back();
  job.facts();
  CHECK_FALSE(job.signs[1].known);
  CHECK(job.signs[1].running);
}

TEST_CASE("who has ended well does not run, and is not asked for") {
  QuietJob job(2);
  job.story.exits(1, 0);
  job.samples.pop_back();
  const StallFacts facts = job.facts();
  CHECK_FALSE(job.signs[1].running);
  const auto stall = find_stall(facts);
  REQUIRE(stall);
  CHECK(stall->kind == "in_teardown");
}

TEST_CASE("the end of a rank is a sign of life of its job") {
  QuietJob job(2);
  job.story.now_us = kNow - JobStory::kStartSeconds * kSecond - 100 * kSecond;
  job.story.exits(1, 0);
  job.samples.pop_back();
  CHECK_FALSE(find_stall(job.facts()));
  CHECK(job.signs[1].quiet_us == 100 * kSecond);
}

TEST_CASE("who does not wait in the store is who the others wait for") {
  QuietJob job(3);
  job.wait(0, "/default_pg/0//cpu//0/2");
  job.wait(1, "/default_pg/0//cpu//0/2");
  const auto stall = find_stall(job.facts());
  REQUIRE(stall);
  CHECK(stall->kind == "rank_missing");
  CHECK(stall->suspects == std::vector<int>{2});
  CHECK(stall->text.find("ranks 0-1 wait in the store for key '/default_pg/0//cpu//0/2'") == 0);
}

TEST_CASE("a client that does not say who it is accuses nobody") {
  QuietJob job(3);
  job.wait(0, "/key");
  job.wait(-1, "/key");
  const auto stall = find_stall(job.facts());
  REQUIRE(stall);
  CHECK(stall->kind == "all_idle");
  CHECK(stall->text.find("in the store for key '/key'") != std::string::npos);
}

TEST_CASE("an operation that a rank never entered accuses it") {
  QuietJob job(3);
  for (int rank = 0; rank < 3; ++rank) {
    auto operations = std::make_shared<RankOperations>();
    RankCommunicator& one = operations->communicators.emplace_back();
    one.id = 7;
    one.name = "world";
    one.rank = rank;
    one.size = 3;
    one.members = {{0, 1, 3}};
    one.collectives = rank == 1 ? 4 : 5;
    RankCall call;
    call.sequence = one.collectives;
    call.kind = comm::detail::OpKind::kAllReduce;
    call.count = 10;
    call.age_us = 360 * kSecond;
    if (rank == 1) {
      call.state = worker_page::OpState::kDone;
      call.took_us = kSecond;
    }
    one.calls = {call};
    job.samples[static_cast<size_t>(rank)].operations = std::move(operations);
  }
  const auto stall = find_stall(job.facts());
  REQUIRE(stall);
  CHECK(stall->kind == "rank_missing");
  CHECK(stall->suspects == std::vector<int>{1});
  CHECK(stall->text.find("all_reduce") != std::string::npos);
}

TEST_CASE("while one lives nobody is accused") {
  QuietJob job(3);
  job.wait(0, "/key");
  job.samples[2].alive_us = job.samples[2].time_us;
  CHECK(job.facts().accusations.empty());
  CHECK_FALSE(find_stall(job.facts()));
}

TEST_CASE("before anything has begun there is nothing to say") {
  JobStory story;
  std::vector<RankSigns> signs;
  CHECK_FALSE(
      find_stall(stall_facts({story.state, {}, {}, kNow, Clock::now(), kSecond, kSecond}, signs)));
}
