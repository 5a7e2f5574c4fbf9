// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/stall.h"

#include <doctest/doctest.h>

#include "hang/signs.h"

using namespace muster;

namespace {

using Ranks = std::vector<int>;

bool says(const Stall& stall, const std::string& words) {
  return stall.text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("one rank that shows life is enough for the whole job") {
  Signs job(64);
  REQUIRE(job.find());
  job.at(63).quiet_us = Signs::kThreshold - 1;
  CHECK_FALSE(job.find());
}

TEST_CASE("of a rank about which nothing is known nothing is concluded") {
  Signs job(4);
  job.at(2).known = false;
  CHECK_FALSE(job.find());
  CHECK_FALSE(Signs(0).find());
}

TEST_CASE("without a threshold nothing is a stall") {
  const Signs job(2);
  CHECK_FALSE(find_stall({0, job.ranks, {}}));
}

TEST_CASE("all idle in the same wait names nobody") {
  const auto stall = Signs(4).find();
  REQUIRE(stall);
  CHECK(stall->kind == "all_idle");
  CHECK(stall->suspects.empty());
  CHECK(stall->waiting == Ranks{0, 1, 2, 3});
  CHECK(stall->quiet_us == Signs::kThreshold + 7 * Signs::kSecond);
  CHECK(stall->text ==
        "all ranks are idle: ranks 0-3 in futex_wait_queue; no sign of life for 00:05:07");
}

TEST_CASE("who waits elsewhere than most is the suspect") {
  Signs job(4);
  job.at(2).wait_channel = "pipe_read";
  const auto stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "rank_missing");
  CHECK(stall->suspects == Ranks{2});
  CHECK(stall->waiting == Ranks{0, 1, 3});
  CHECK(says(*stall, "rank 2 waits elsewhere than the others"));
  CHECK(says(*stall, "rank 2 in pipe_read"));
}

TEST_CASE("where as many wait here as there nobody is suspected") {
  Signs job(2);
  job.at(1).wait_channel = "pipe_read";
  const auto stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "all_idle");
  CHECK(says(*stall, "rank 0 in futex_wait_queue, rank 1 in pipe_read"));
}

TEST_CASE("a rank that spins is caught while the others wait") {
  const auto stall = Signs(3).spins(1).find();
  REQUIRE(stall);
  CHECK(stall->kind == "spinning");
  CHECK(stall->suspects == Ranks{1});
  CHECK(stall->waiting == Ranks{0, 2});
  CHECK(says(*stall, "rank 1 uses a core and does nothing else"));
  CHECK(Signs(2).spins(0).find());
}

TEST_CASE(
    "ranks that use a core may compute: alone, or more than those that wait, they are let be") {
  CHECK_FALSE(Signs(1).spins(0).find());
  CHECK_FALSE(Signs(2).spins(0).spins(1).find());
  CHECK_FALSE(Signs(3).spins(0).spins(1).find());
}

TEST_CASE("a stopped rank is named, whatever the others do") {
  Signs job(3);
  job.spins(0).spins(2).at(1).state = 'T';
  auto stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "stopped");
  CHECK(stall->suspects == Ranks{1});
  CHECK(says(*stall, "SIGCONT"));
  job.at(1).state = 't';
  stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "stopped");
  CHECK(says(*stall, "debugger"));
}

TEST_CASE("a rank in the kernel is named with where it waits there") {
  Signs job(3);
  job.at(1).state = 'D';
  job.at(1).wait_channel = "request_wait_answer";
  const auto stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "in_kernel");
  CHECK(stall->suspects == Ranks{1});
  CHECK(says(*stall, "rank 1 is stuck in the kernel, rank 1 in request_wait_answer"));
}

TEST_CASE("a traceback whose process did not end is the cause") {
  Signs job(3);
  job.at(2).traceback = "ValueError: bad shape (train.py:41)";
  const auto stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "after_traceback");
  CHECK(stall->suspects == Ranks{2});
  CHECK(says(*stall, "ValueError: bad shape (train.py:41)"));
}

TEST_CASE("what ranks wait for names who is missing") {
  Signs job(4);
  job.accusations = {{{3}, {0, 1, 2}, "rank 3 never entered all_reduce"}};
  auto stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "rank_missing");
  CHECK(stall->suspects == Ranks{3});
  CHECK(says(*stall, "rank 3 never entered all_reduce; rank 3 in futex_wait_queue"));
  // Most cannot be the exception; and who has ended is not hung.
  job.accusations = {{{1, 2, 3}, {0}, "rank 0 waits"}};
  stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "all_idle");
  CHECK(says(*stall, "rank 0 waits"));
}

TEST_CASE("some have finished and the rest does not end: a teardown") {
  Signs job(3);
  job.at(0).running = job.at(2).running = false;
  job.at(0).known = job.at(2).known = false;
  const auto stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "in_teardown");
  CHECK(stall->suspects == Ranks{1});
  CHECK(stall->waiting.empty());
  CHECK(says(*stall, "rank 1 does not end, while ranks 0, 2 finished"));
  // It may still compute.
  CHECK_FALSE(job.spins(1).find());
}

TEST_CASE("where a rank waits must be known for it to wait elsewhere") {
  Signs job(4);
  job.at(1).wait_channel.clear();
  job.at(2).wait_channel.clear();
  job.at(2).state = 'R';
  auto stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "all_idle");
  CHECK(says(*stall, "ranks 0, 3 in futex_wait_queue, rank 2 running, rank 1 waiting"));
  job.at(0).wait_channel.clear();
  stall = job.find();
  REQUIRE(stall);
  CHECK(stall->kind == "all_idle");
}

TEST_CASE("a rank that ends is a sign of life: the others may have waited for it") {
  Signs job(3);
  job.at(0).running = job.at(0).known = false;
  job.at(0).quiet_us = Signs::kThreshold - 1;
  CHECK_FALSE(job.find());
  job.at(0).quiet_us = Signs::kThreshold;
  const auto stall = job.find();
  REQUIRE(stall);
  CHECK(stall->quiet_us == Signs::kThreshold);
}

TEST_CASE("a rank is named with its host, and however many there are the line is short") {
  Signs job(5'000);
  for (RankSigns& one : job.ranks)
    one.host = "node-" + std::to_string(one.rank / 8);
  job.at(9).wait_channel = "pipe_read";
  auto stall = job.find();
  REQUIRE(stall);
  CHECK(says(*stall, "rank 9 on node-1 waits elsewhere"));
  for (RankSigns& one : job.ranks)
    one.wait_channel = std::string(200, static_cast<char>('a' + one.rank % 26)) + "\x1b[2J";
  stall = job.find();
  REQUIRE(stall);
  CHECK(stall->text.size() <= 4 * kMaxStallText);
  CHECK_FALSE(says(*stall, "\x1b"));
}
