// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/file_store.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "nccl/join/member_process.h"

namespace muster::comm::detail {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Keys = std::vector<std::string>;
using Items = std::vector<std::pair<std::string, std::string>>;
using Admission = FileStore::Admission;

struct FileStoreTest {
  ScratchFolder folder;
  std::string path = folder.path("store");

  std::unique_ptr<FileStore> open(Admission admission = {},
                                  milliseconds timeout = milliseconds(20'000)) const {
    auto store = FileStore::open(path, timeout, [&](const Table&, bool) { return admission; });
    if (!store) MESSAGE(store.error().message);
    REQUIRE(store.has_value());
    return std::move(*store);
  }
};

}  // namespace

TEST_CASE_FIXTURE(FileStoreTest,
                  "every call does what a store's does, for all who share the file") {
  auto store = open();
  auto other = open();
  CHECK(store->set("k", "value").has_value());
  CHECK(*other->get("k") == "value");
  CHECK(*store->add("n", 5) == 5);
  CHECK(*other->add("n", -6) == -1);
  CHECK(*store->get("n") == "-1");
  CHECK_FALSE(store->add("k", 1).has_value());
  CHECK(*store->compare_set("c", "x", "y") == "x");
  CHECK_FALSE(*other->check(Keys{"c"}));
  CHECK(*store->compare_set("c", "", "first") == "first");
  CHECK(*other->compare_set("c", "no", "second") == "first");
  CHECK(store->append("k", "+").has_value());
  CHECK(*other->check(Keys{"k", "n"}));
  CHECK_FALSE(*other->check(Keys{"k", "none"}));
  CHECK(other->wait(Keys{"k"}).has_value());
  CHECK(store->multi_set(Items{{"a", "1"}, {"b", ""}}).has_value());
  CHECK(*other->multi_get(Keys{"b", "k", "a"}) == Keys{"", "value+", "1"});
  CHECK(*other->num_keys() == 5);
  CHECK(*other->erase("a"));
  CHECK_FALSE(*store->erase("a"));
  Keys keys = *store->list_keys();
  std::ranges::sort(keys);
  CHECK(keys == Keys{"b", "c", "k", "n"});
  CHECK(store->queue_pop("q", false).error().code == ENODATA);
  CHECK(store->queue_push("q", "one").has_value());
  CHECK(other->queue_push("q", "two").has_value());
  CHECK(*store->queue_length("q") == 2);
  CHECK(*other->queue_pop("q", false) == "one");
  CHECK(*store->queue_pop("q", true) == "two");
  const std::string bytes("\0\n\xff", 3);
  CHECK(store->set(bytes, bytes).has_value());
  CHECK(*other->get(bytes) == bytes);
}

TEST_CASE_FIXTURE(FileStoreTest, "a wait ends when the key comes, or at its time") {
  auto store = open();
  auto other = open();
  const auto begin = Clock::now();
  CHECK(store->wait(Keys{"k"}, milliseconds(30)).error().code == ETIMEDOUT);
  CHECK(Clock::now() - begin >= milliseconds(30));
  CHECK(store->wait(Keys{"k"}, milliseconds(0)).error().code == ETIMEDOUT);
  std::thread writer([&] { CHECK(other->set("k", "late").has_value()); });
  CHECK(*store->get("k") == "late");
  writer.join();
  store->set_timeout(milliseconds(20));
  CHECK(store->timeout() == milliseconds(20));
  CHECK(store->get("never").error().code == ETIMEDOUT);
}

TEST_CASE_FIXTURE(FileStoreTest, "a wait without end is a wait") {
  auto store = open({}, milliseconds::max());
  auto other = open();
  CHECK(store->set("here", "").has_value());
  std::thread writer([&] {
    CHECK(other->wait(Keys{"here"}).has_value());
    CHECK(other->set("one", "1").has_value());
    CHECK(other->set("two", "2").has_value());
  });
  CHECK(*store->get("one") == "1");
  CHECK(store->wait(Keys{"two"}, milliseconds::max()).has_value());
  writer.join();
}

TEST_CASE_FIXTURE(FileStoreTest, "counters, queues and barriers hold among many members") {
  constexpr int kMembers = 8, kTurns = 25;
  std::atomic<int> arrived = 0;
  std::vector<std::thread> members;
  members.reserve(kMembers);
  for (int i = 0; i < kMembers; ++i)
    members.emplace_back([&] {
      auto store = open();
      for (int turn = 0; turn < kTurns; ++turn) {
        CHECK(store->add("n", 1).has_value());
        CHECK(store->queue_push("q", "item").has_value());
      }
      ++arrived;
      CHECK(store->barrier("b", kMembers, milliseconds(20'000)).has_value());
      CHECK(arrived == kMembers);
      for (int turn = 0; turn < kTurns; ++turn)
        CHECK(*store->queue_pop("q", true) == "item");
    });
  for (std::thread& member : members)
    member.join();
  auto store = open();
  CHECK(*store->add("n", 0) == kMembers * kTurns);
  CHECK(*store->queue_length("q") == 0);
}

TEST_CASE_FIXTURE(FileStoreTest, "a clone is the same store and may wait while the first is used") {
  auto store = open();
  auto copy = store->clone();
  REQUIRE(copy.has_value());
  std::thread waiter([&] { CHECK((*copy)->wait(Keys{"k"}).has_value()); });
  CHECK(store->set("k", "").has_value());
  waiter.join();
}

TEST_CASE_FIXTURE(FileStoreTest, "a long history is shortened, for those in the middle of it too") {
  auto store = open();
  auto reader = open();
  CHECK(store->set("first", "1").has_value());
  CHECK(store->queue_push("q", "item").has_value());
  CHECK(*reader->get("first") == "1");
  const std::string big(64 << 10, 'x');
  uint64_t largest = 0;
  for (int i = 0; i < 200; ++i) {
    REQUIRE(store->set("big", big + std::to_string(i)).has_value());
    std::ifstream file(path, std::ios::binary);
    uint64_t header[5];
    file.read(reinterpret_cast<char*>(header), sizeof header);
    largest = std::max(largest, header[4] - header[3]);
  }
  CHECK(largest < 2 * FileStore::kShortenAt);  // of 13 MB that were written
  CHECK(*reader->get("big") == big + "199");
  CHECK(*reader->get("first") == "1");
  CHECK(*reader->queue_pop("q", false) == "item");
  CHECK(*open()->num_keys() == 2);
}

TEST_CASE_FIXTURE(FileStoreTest, "what is too large is refused and changes nothing") {
  auto store = open();
  const std::string half(FileStore::kLimits.value / 2 + 1, 'x');
  REQUIRE(store->set("k", half).has_value());
  CHECK(store->append("k", half).error().code == ENOSPC);
  CHECK(store->get("k")->size() == half.size());
  for (int i = 0; i < 6; ++i)
    REQUIRE(store->set("k" + std::to_string(i), half).has_value());
  CHECK(store->set("one more", std::string(FileStore::kLimits.value, 'x')).error().code == ENOSPC);
  CHECK(*open()->num_keys() == 7);
  CHECK(*store->num_keys() == 7);
}

TEST_CASE_FIXTURE(FileStoreTest, "members who are killed in the middle of writing spoil nothing") {
  auto store = open();
  for (int i = 0; i < 20; ++i) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
      auto mine = FileStore::open(path, milliseconds(20'000),
                                  [](const Table&, bool) { return Admission(); });
      for (int n = 0;; ++n) {
        static_cast<void>((*mine)->set("k" + std::to_string(n % 7), std::string(20'000, 'y')));
        if (n == 5 && write(ready[1], "x", 1) != 1) _exit(1);
      }
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CHECK(*store->add("n", 1) == i + 1);
    CHECK(*store->get("k0") == std::string(20'000, 'y'));
  }
}

TEST_CASE_FIXTURE(FileStoreTest, "when the file is begun anew the old members are told") {
  auto old = open();
  auto copy = old->clone();
  CHECK(old->set("k", "old").has_value());
  auto young = open({Admission::Kind::kBeginAnew, {{"k", "new"}}, ""});
  CHECK(*young->get("k") == "new");
  CHECK(old->set("k", "old").error().code == ESTALE);
  CHECK(old->wait(Keys{"never"}, milliseconds(20'000)).error().code == ESTALE);
  CHECK((*copy)->get("k").error().message == "file://" + path + ": another job has begun it anew");
  CHECK(*young->num_keys() == 1);
}

TEST_CASE_FIXTURE(FileStoreTest, "who is to come later comes when the file changes or goes") {
  auto store = open();
  CHECK(store->set("busy", "").has_value());
  std::atomic<int> asked = 0;
  std::unique_ptr<FileStore> late;
  std::thread comer([&] {
    auto opened = FileStore::open(path, milliseconds(20'000), [&](const Table& table, bool) {
      ++asked;
      Admission admission;
      if (table.exists("busy")) admission = {Admission::Kind::kComeLater, {}, "busy"};
      return admission;
    });
    REQUIRE(opened.has_value());
    late = std::move(*opened);
  });
  while (asked < 2)
    std::this_thread::yield();
  SUBCASE("changes") {
    CHECK(store->erase("busy").has_value());
  }
  SUBCASE("goes") {
    CHECK(store->leave({}, [](const Table&) { return true; }).has_value());
    CHECK_FALSE(std::filesystem::exists(path));
  }
  comer.join();
  CHECK(*late->num_keys() == 0);
  CHECK(std::filesystem::exists(path));
  auto never = FileStore::open(path, milliseconds(50), [&](const Table&, bool) {
    return Admission{Admission::Kind::kComeLater, {}, "busy"};
  });
  REQUIRE_FALSE(never.has_value());
  CHECK(never.error().code == ETIMEDOUT);
  CHECK(never.error().message == "file://" + path + ": busy");
}

TEST_CASE_FIXTURE(FileStoreTest, "the last to leave removes the file, and no other in its place") {
  auto store = open();
  CHECK(store
            ->leave(Items{{"gone", ""}},
                    [](const Table& table) {
                      CHECK(table.exists("gone"));
                      return false;
                    })
            .has_value());
  CHECK(std::filesystem::exists(path));
  std::filesystem::remove(path);
  auto other = open();
  CHECK(store->leave({}, [](const Table&) { return true; }).has_value());
  CHECK(std::filesystem::exists(path));
}

TEST_CASE_FIXTURE(FileStoreTest, "damage is found, not believed") {
  {
    auto store = open();
    CHECK(store->set("key", "value").has_value());
  }
  const auto damage = [&](std::streamoff at, const std::string& bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file << bytes;
  };
  const auto complaint = [&] {
    auto store =
        FileStore::open(path, milliseconds(1'000), [](const Table&, bool) { return Admission(); });
    return store ? "none" : store.error().message;
  };
  damage(64, "\xee");
  CHECK(complaint() == "file://" + path + ": is damaged");
  damage(32, std::string("\0\0\0\0\0\1\0\0", 8));
  CHECK(complaint() == "file://" + path + ": is shorter than it says");
  damage(0, "x");
  CHECK(complaint() == "file://" + path + ": is not one that ranks meet at; it is left as it is");
}

TEST_CASE_FIXTURE(FileStoreTest, "a lock that is held is waited for, not for ever") {
  auto store = open();
  auto holder = SharedLog::open(path);
  auto held = holder->lock(SharedLog::Access::kWrite, Clock::now() + milliseconds(1'000));
  REQUIRE(held.has_value());
  store->set_timeout(milliseconds(50));
  const auto begin = Clock::now();
  CHECK(store->set("k", "v").error().message ==
        "file://" + path + ": another process holds its lock");
  CHECK(Clock::now() - begin < milliseconds(5'000));
}

}  // namespace muster::comm::detail
