// SPDX-License-Identifier: Apache-2.0
#include "store/waits.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace muster {

namespace {

const Clock::time_point kNow{};

std::vector<ClientId> wake_all(Waits& waits, std::string_view key) {
  std::vector<ClientId> woken;
  waits.wake_all(key, woken);
  return woken;
}

std::vector<ClientId> wake_one(Waits& waits, std::string_view key) {
  std::vector<ClientId> woken;
  waits.wake_one(key, woken);
  return woken;
}

using Ids = std::vector<ClientId>;

}  // namespace

TEST_CASE("a key wakes everyone who waits for it, in the order in which they came") {
  Waits waits;
  for (ClientId id : {3, 1, 2})
    waits.wait(id, {"/k"}, false, kNow);
  waits.wait(4, {"/other"}, false, kNow);
  CHECK(wake_all(waits, "/k") == Ids{3, 1, 2});
  CHECK(wake_all(waits, "/k").empty());
  CHECK(waits.size() == 1);
}

TEST_CASE("a client wakes when its last key is there") {
  Waits waits;
  waits.wait(1, {"/a", "/b", "/c"}, false, kNow);
  CHECK(wake_all(waits, "/b").empty());
  CHECK(wake_all(waits, "/a").empty());
  CHECK(wake_all(waits, "/b").empty());
  CHECK(wake_all(waits, "/c") == Ids{1});
  CHECK(waits.empty());
}

TEST_CASE("a key listed twice counts twice and wakes once") {
  Waits waits;
  waits.wait(1, {"/a", "/a"}, false, kNow);
  CHECK(wake_all(waits, "/a") == Ids{1});
}

TEST_CASE("one item wakes one waiter, the first that it completes") {
  Waits waits;
  waits.wait(1, {"/q", "/more"}, false, kNow);
  waits.wait(2, {"/q"}, false, kNow);
  waits.wait(3, {"/q"}, false, kNow);
  CHECK(wake_one(waits, "/q") == Ids{2});
  CHECK(wake_one(waits, "/q") == Ids{3});
  CHECK(wake_one(waits, "/q").empty());
  CHECK(wake_all(waits, "/more") == Ids{1});
}

TEST_CASE("a client that cancels is forgotten everywhere") {
  Waits waits;
  waits.wait(1, {"/a", "/b", "/a"}, false, kNow);
  waits.wait(2, {"/a"}, false, kNow);
  CHECK(waits.cancel(1));
  CHECK_FALSE(waits.cancel(1));
  CHECK(wake_all(waits, "/a") == Ids{2});
  CHECK(wake_all(waits, "/b").empty());
  CHECK(waits.empty());
}

TEST_CASE("a new wait replaces the old one") {
  Waits waits;
  waits.wait(1, {"/a"}, false, kNow);
  waits.wait(1, {"/b"}, false, kNow);
  CHECK(wake_all(waits, "/a").empty());
  CHECK(wake_all(waits, "/b") == Ids{1});
}

TEST_CASE("who waits, for what and since when is readable") {
  Waits waits;
  waits.wait(1, {"/a", "/b"}, false, kNow + std::chrono::milliseconds(5));
  waits.wait(2, {"/c"}, true, kNow + std::chrono::milliseconds(9));
  wake_all(waits, "/a");
  std::vector<Waiter> seen;
  waits.for_each([&](const Waiter& waiter) { seen.push_back(waiter); });
  std::ranges::sort(seen, {}, &Waiter::client);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].keys == std::vector<std::string>{"/b"});
  CHECK(seen[0].since == kNow + std::chrono::milliseconds(5));
  CHECK_FALSE(seen[0].barrier);
  CHECK(seen[1].keys == std::vector<std::string>{"/c"});
  CHECK(seen[1].barrier);
}

TEST_CASE("ten thousand waiters of one key leave in any order") {
  Waits waits;
  constexpr ClientId kClients = 10'000;
  for (ClientId id = 0; id < kClients; ++id)
    waits.wait(id, {"/k"}, false, kNow);
  for (ClientId id = kClients; id-- > 1;)
    waits.cancel(id);
  CHECK(wake_all(waits, "/k") == Ids{0});
}

}  // namespace muster
