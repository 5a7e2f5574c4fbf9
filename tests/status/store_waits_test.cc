// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/store_waits.h"

#include <doctest/doctest.h>

#include "job/job_story.h"

using namespace muster;

namespace {

struct Waiting : JobStory {
  Clock::time_point now{std::chrono::seconds(1'000)};
  std::vector<StoreWaiter> waiters;

  Waiting& waits(uint32_t pid, std::vector<std::string> keys, int seconds,
                 std::string peer = "127.0.0.1:4000") {
    waiters.push_back(
        {std::move(peer), pid, now - std::chrono::seconds(seconds), false, std::move(keys)});
    return *this;
  }
  uint32_t pid_of(int rank) const { return static_cast<uint32_t>(pid(rank)); }
  StoreWaits folded() const { return fold_store_waits(state, waiters, now); }
};

}  // namespace

TEST_CASE_FIXTURE(Waiting, "the rank that everybody waits for is the one that does not wait") {
  start(4).start_attempt(4);
  for (int rank : {2, 0, 1})
    waits(pid_of(rank), {"/key/3"}, 10 + rank);
  const StoreWaits waits = folded();
  CHECK(waits.ranks == std::vector<int>{0, 1, 2});
  CHECK(waits.others == std::vector<int>{3});
  CHECK(waits.longest_us == 12'000'000);
  REQUIRE(waits.groups.size() == 1);
  CHECK(waits.groups[0].keys == std::vector<std::string>{"/key/3"});
  CHECK(waits.groups[0].ranks == std::vector<int>{0, 1, 2});
}

TEST_CASE_FIXTURE(Waiting, "the longest wait comes first") {
  start(2).start_attempt(2);
  waits(pid_of(0), {"/a"}, 5).waits(pid_of(1), {"/b"}, 50);
  const StoreWaits waits = folded();
  REQUIRE(waits.groups.size() == 2);
  CHECK(waits.groups[0].keys[0] == "/b");
}

TEST_CASE_FIXTURE(Waiting, "many different keys are folded by what differs in their numbers") {
  start(1000).start_attempt(1000);
  for (int rank = 0; rank < 999; ++rank)
    waits(pid_of(rank), {"/group/0/" + std::to_string(rank), "/done"}, 1);
  const StoreWaits waits = folded();
  REQUIRE(waits.groups.size() == 1);
  CHECK(waits.groups[0].key_count == 1000);
  CHECK(waits.groups[0].keys.size() == kMaxKeysShown);
  CHECK(waits.groups[0].waiters == 999);
  CHECK(waits.others == std::vector<int>{999});
}

TEST_CASE_FIXTURE(Waiting, "groups beyond the limit are counted") {
  start(1).start_attempt(1);
  for (char c = 'a'; c < 'a' + 26; ++c)
    waits(5, {std::string("/") + c}, c - 'a');
  const StoreWaits waits = folded();
  CHECK(waits.groups.size() == kMaxWaitGroups);
  CHECK(waits.more_groups == 26 - kMaxWaitGroups);
  CHECK(waits.groups[0].keys[0] == "/z");
}

TEST_CASE_FIXTURE(Waiting, "a client that is no worker is told by its process") {
  start(1).start_attempt(1);
  waits(77, {"/a"}, 1).waits(0, {"/a"}, 1);
  const StoreWaits waits = folded();
  REQUIRE(waits.groups.size() == 1);
  CHECK(waits.groups[0].ranks.empty());
  CHECK(waits.groups[0].pids == std::vector<uint32_t>{77});
  CHECK(waits.groups[0].waiters == 2);
  CHECK(waits.others.empty());
}

TEST_CASE_FIXTURE(Waiting, "the same process id on two nodes is told apart by the address") {
  start(1);
  for (int i = 0; i < 2; ++i) {
    const std::string n = std::to_string(i);
    say(event::NodeJoined{"id-" + n, "node-" + n, "10.0.0." + n, 70, 1, false});
  }
  event::AttemptStarted started;
  started.node_count = 2;
  started.world_size = 2;
  started.nodes = {{0, "node-0", 0, 1, "id-0"}, {1, "node-1", 1, 1, "id-1"}};
  say(started).say(event::WorkerSpawned{0, 0, 0, 500}).say(event::WorkerSpawned{0, 1, 0, 500});
  waits(500, {"/a"}, 1, "10.0.0.1:999");
  CHECK(folded().ranks == std::vector<int>{1});
  waiters.clear();
  waits(500, {"/a"}, 1, "127.0.0.1:999");
  CHECK(folded().ranks == std::vector<int>{0});
  waiters.clear();
  waits(500, {"/a"}, 1, "10.9.9.9:999");
  CHECK(folded().ranks.empty());
}
