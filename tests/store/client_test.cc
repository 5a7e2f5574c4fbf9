// SPDX-License-Identifier: Apache-2.0
#include "store/client.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>

#include "store/bytes.h"
#include "store/prefix_store.h"
#include "store/server_thread.h"

namespace muster {

namespace {

using std::chrono::milliseconds;
using Keys = std::vector<std::string>;

struct ClientTest {
  ServerThread server;

  std::unique_ptr<StoreClient> connect(bool member = false) {
    auto client = StoreClient::connect({"127.0.0.1", server.port(), milliseconds(20'000), member});
    if (!client) MESSAGE(client.error().message);
    REQUIRE(client.has_value());
    return std::move(*client);
  }
};

Result<std::unique_ptr<StoreClient>> connect_to(int port, milliseconds timeout) {
  return StoreClient::connect({"127.0.0.1", port, timeout, false});
}

milliseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

}  // namespace

TEST_CASE_FIXTURE(ClientTest, "the client's calls do what they say") {
  auto store = connect();
  CHECK(store->set("k", "value").has_value());
  CHECK(*store->get("k") == "value");
  CHECK(*store->add("n", 5) == 5);
  CHECK(*store->add("n", -6) == -1);
  CHECK(*store->get("n") == "-1");
  CHECK(*store->compare_set("c", "", "first") == "first");
  CHECK(*store->compare_set("c", "no", "second") == "first");
  CHECK(store->append("k", "+").has_value());
  CHECK(*store->check(Keys{"k", "n"}));
  CHECK_FALSE(*store->check(Keys{"k", "none"}));
  CHECK(store->wait(Keys{"k"}).has_value());
  CHECK(store->multi_set(std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", ""}})
            .has_value());
  CHECK(*store->multi_get(Keys{"b", "k", "a"}) == Keys{"", "value+", "1"});
  CHECK(*store->num_keys() == 5);
  CHECK(*store->erase("a"));
  CHECK_FALSE(*store->erase("a"));
  Keys keys = *store->list_keys();
  std::ranges::sort(keys);
  CHECK(keys == Keys{"b", "c", "k", "n"});
}

TEST_CASE_FIXTURE(ClientTest, "values of any bytes and megabytes survive") {
  auto store = connect();
  std::string value(5'000'000, '\0');
  for (size_t i = 0; i < value.size(); ++i)
    value[i] = static_cast<char>(i * 31 >> 3);
  REQUIRE(store->set("", value).has_value());
  CHECK(*store->get("") == value);
}

TEST_CASE_FIXTURE(ClientTest, "a member is counted under init/") {
  auto first = connect(true);
  auto second = connect(true);
  CHECK(*first->num_keys() == 1);
  CHECK(first->list_keys()->empty());
}

TEST_CASE_FIXTURE(ClientTest, "a wait in vain ends in time and the client goes on") {
  auto store = connect();
  for (int i = 0; i < 3; ++i) {
    auto start = std::chrono::steady_clock::now();
    Result<void> waited = store->wait(Keys{"never", "nowhere"}, milliseconds(30));
    CHECK(since(start) >= milliseconds(30));
    REQUIRE_FALSE(waited.has_value());
    CHECK(waited.error().code == ETIMEDOUT);
    CHECK(waited.error().message == "store: wait for never, nowhere: timed out after 30ms");
    CHECK(*store->add("n", 1) == i + 1);
  }
  Result<void> barrier = store->barrier("b", 2, milliseconds(20));
  REQUIRE_FALSE(barrier.has_value());
  CHECK(barrier.error().message == "store: barrier b: timed out after 20ms");
  store->set_timeout(milliseconds(20));
  CHECK(store->get("never").error().code == ETIMEDOUT);
  CHECK(*store->add("n", 0) == 3);
}

TEST_CASE_FIXTURE(ClientTest, "a wait with no time only looks") {
  auto store = connect();
  CHECK(store->wait(Keys{"k"}, milliseconds(0)).error().code == ETIMEDOUT);
  REQUIRE(store->set("k", "").has_value());
  CHECK(store->wait(Keys{"k"}, milliseconds(0)).has_value());
}

TEST_CASE_FIXTURE(ClientTest, "get waits for another client's set") {
  auto reader = connect();
  auto writer = connect();
  std::thread late([&] {
    REQUIRE_FALSE(writer->wait(Keys{"never"}, milliseconds(50)).has_value());
    CHECK(writer->set("k", "late").has_value());
  });
  CHECK(*reader->get("k") == "late");
  late.join();
}

TEST_CASE_FIXTURE(ClientTest, "a barrier holds everyone until the last") {
  constexpr int kMembers = 8;
  std::atomic<int> arrived = 0;
  std::vector<std::thread> members;
  for (int i = 0; i < kMembers; ++i) {
    members.emplace_back([&] {
      auto store = connect();
      ++arrived;
      CHECK(store->barrier("b", kMembers, milliseconds(20'000)).has_value());
      CHECK(arrived == kMembers);
    });
  }
  for (std::thread& member : members)
    member.join();
}

TEST_CASE_FIXTURE(ClientTest, "queues hand each item to one taker") {
  auto store = connect();
  auto other = connect();
  CHECK(store->queue_pop("q", false).error().code == ENODATA);
  CHECK(store->queue_push("q", "one").has_value());
  CHECK(store->queue_push("q", "two").has_value());
  CHECK(*store->queue_length("q") == 2);
  CHECK(*other->queue_pop("q", false) == "one");
  CHECK(*store->queue_pop("q", true) == "two");
  std::thread pusher([&] { CHECK(other->queue_push("q", "late").has_value()); });
  CHECK(*store->queue_pop("q", true) == "late");
  pusher.join();
}

TEST_CASE_FIXTURE(ClientTest, "prefixes nest and keep keys apart") {
  std::shared_ptr<Store> base = connect();
  auto inner = std::make_shared<PrefixStore>("B", base);
  PrefixStore outer("A", inner);
  CHECK(outer.set("k", "v").has_value());
  CHECK(*base->get("B/A/k") == "v");
  CHECK(*outer.get("k") == "v");
  CHECK_FALSE(*inner->check(Keys{"k"}));
  CHECK(*outer.list_keys() == Keys{"k"});
  CHECK(*inner->list_keys() == Keys{"A/k"});
  CHECK(PrefixStore("A", base).list_keys()->empty());
  CHECK(*outer.num_keys() == 1);
  CHECK(*outer.add("n", 2) == 2);
  CHECK(outer.append("k", "w").has_value());
  CHECK(outer.multi_set(std::vector<std::pair<std::string, std::string>>{{"m", "1"}}).has_value());
  CHECK(*outer.multi_get(Keys{"m", "k"}) == Keys{"1", "vw"});
  CHECK(*outer.compare_set("m", "1", "2") == "2");
  CHECK(outer.queue_push("q", "x").has_value());
  CHECK(*outer.queue_length("q") == 1);
  CHECK(*base->queue_length("B/A/q") == 1);
  CHECK(*outer.queue_pop("q", true) == "x");
  CHECK(*outer.erase("m"));
  CHECK(outer.wait(Keys{"k", "n"}).has_value());
  CHECK(PrefixStore("", base).set("k", "").has_value());
  CHECK(*base->check(Keys{"/k"}));
}

TEST_CASE_FIXTURE(ClientTest, "a prefixed barrier is made of the keys that PyTorch uses") {
  std::shared_ptr<Store> base = connect();
  PrefixStore store("P", base);
  std::thread second([&] {
    PrefixStore other("P", connect());
    CHECK(other.barrier("b", 2, milliseconds(20'000)).has_value());
  });
  CHECK(store.barrier("b", 2, milliseconds(20'000)).has_value());
  second.join();
  CHECK(*base->get("P/b/num_members") == "2");
  CHECK(*base->get("P/b/last_member") == "1");
}

TEST_CASE_FIXTURE(ClientTest, "a clone is a connection of its own with the same prefix") {
  std::shared_ptr<Store> base = connect();
  PrefixStore store("P", base);
  auto copy = store.clone();
  REQUIRE(copy.has_value());
  std::thread waiter([&] { CHECK((*copy)->wait(Keys{"k"}).has_value()); });
  CHECK(store.set("k", "").has_value());
  waiter.join();
}

TEST_CASE_FIXTURE(ClientTest, "several threads may share a client") {
  auto store = connect();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n)
        CHECK(store->add("n", 1).has_value());
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(*store->add("n", 0) == 400);
}

TEST_CASE("without a server, connecting ends in time and says where and why") {
  int port;
  {
    ScriptedServer gone([](int) {});
    port = gone.port();
  }
  auto start = std::chrono::steady_clock::now();
  auto client = connect_to(port, milliseconds(700));
  CHECK(since(start) < milliseconds(2'000));
  REQUIRE_FALSE(client.has_value());
  CHECK(client.error().code == ETIMEDOUT);
  CHECK(client.error().message == "store: no connection to 127.0.0.1:" + std::to_string(port) +
                                      " within 700ms: connect: Connection refused");
}

TEST_CASE("a name that does not exist and a port that cannot be end in time") {
  auto start = std::chrono::steady_clock::now();
  auto client = StoreClient::connect({"no-such-host.invalid", 1234, milliseconds(300), false});
  CHECK(since(start) < milliseconds(2'000));
  REQUIRE_FALSE(client.has_value());
  CHECK(client.error().message.find("no-such-host.invalid") != std::string::npos);
  CHECK(connect_to(0, milliseconds(300)).error().code == EINVAL);
  CHECK(connect_to(65536, milliseconds(300)).error().code == EINVAL);
}

TEST_CASE("a server that accepts and never answers does not hang the client") {
  ScriptedServer silent(ScriptedServer::until_closed);
  auto start = std::chrono::steady_clock::now();
  auto client = connect_to(silent.port(), milliseconds(200));
  CHECK(since(start) < milliseconds(2'000));
  REQUIRE_FALSE(client.has_value());
  CHECK(client.error().code == ETIMEDOUT);
}

TEST_CASE("the greeting is one write: VALIDATE and PING with the process id and its mark") {
  std::string greeting;
  ScriptedServer server([&](int fd) {
    greeting = ScriptedServer::read_exactly(fd, 10);
    ScriptedServer::write(fd, greeting.substr(6));
    ScriptedServer::until_closed(fd);
  });
  REQUIRE(connect_to(server.port(), milliseconds(20'000)).has_value());
  CHECK(greeting ==
        request::validate().add(request::ping(static_cast<uint32_t>(getpid()) | kPingMark)).text);
}

TEST_CASE("a server that closes or answers wrongly at first is tried again") {
  std::atomic<int> round = 0;
  ScriptedServer server([&](int fd) {
    if (++round <= 2) return;  // the greeting, and the question in 1.13's way
    if (round == 3) {
      ScriptedServer::read_exactly(fd, 10);
      ScriptedServer::write(fd, Bytes().u32(12345));
      return;
    }
    ScriptedServer::greet(fd);
    ScriptedServer::until_closed(fd);
  });
  CHECK(connect_to(server.port(), milliseconds(20'000)).has_value());
  CHECK(round == 4);
}

TEST_CASE("a server of PyTorch 1.13 is spoken to in its own way") {
  std::atomic<int> round = 0;
  const auto legacy = [](int fd) {
    CHECK(ScriptedServer::read_exactly(fd, 1) == Bytes().u8(6).text);  // GETNUMKEYS
    ScriptedServer::write(fd, Bytes().i64(0));
  };
  ScriptedServer server([&](int fd) {
    ++round;
    if (round == 1 || round == 3) {
      // What such a server makes of the greeting: a SET with a key of an impossible length.
      const std::string greeting = ScriptedServer::read_exactly(fd, 9);
      uint64_t length = 0;
      std::memcpy(&length, greeting.data() + 1, sizeof length);
      CHECK(greeting[0] == 0);
      CHECK(length >= uint64_t{1} << 63);
      return;
    }
    legacy(fd);
    if (round == 4) return ScriptedServer::until_closed(fd);
    const std::string add = Bytes().u8(3).str("/n").i64(2);
    CHECK(ScriptedServer::read_exactly(fd, add.size()) == add);
    ScriptedServer::write(fd, Bytes().i64(2));
    const std::string wait = Bytes().u8(5).u64(1).str("/k");
    CHECK(ScriptedServer::read_exactly(fd, wait.size()) == wait);
    ScriptedServer::until_closed(fd);  // a wait is given up by leaving
  });
  auto store = connect_to(server.port(), milliseconds(20'000));
  REQUIRE(store.has_value());
  CHECK(*(*store)->add("n", 2) == 2);
  CHECK((*store)->wait(Keys{"k"}, milliseconds(20)).error().code == ETIMEDOUT);
  CHECK((*store)->append("k", "v").error().code == EOPNOTSUPP);
  CHECK(round == 4);
}

TEST_CASE("an answer that crosses the cancellation still counts as too late") {
  ScriptedServer server([](int fd) {
    ScriptedServer::greet(fd);
    const std::string wait = request::wait({"/k"});
    ScriptedServer::read_exactly(fd, wait.size() + 1);  // the WAIT and the CANCEL_WAIT
    ScriptedServer::write(fd, Bytes().u8(0).u8(1));
    ScriptedServer::read_exactly(fd, request::num_keys().text.size());
    ScriptedServer::write(fd, Bytes().i64(42));
    ScriptedServer::until_closed(fd);
  });
  auto store = connect_to(server.port(), milliseconds(20'000));
  REQUIRE(store.has_value());
  CHECK((*store)->wait(Keys{"k"}, milliseconds(20)).error().code == ETIMEDOUT);
  CHECK(*(*store)->num_keys() == 42);
}

TEST_CASE("a wrong answer or a lost server ends the client, with the reason each time") {
  ScriptedServer server([](int fd) {
    ScriptedServer::greet(fd);
    ScriptedServer::read_exactly(fd, request::wait({"/k"}).text.size());
    ScriptedServer::write(fd, Bytes().u8(9));
  });
  auto store = connect_to(server.port(), milliseconds(20'000));
  REQUIRE(store.has_value());
  Result<void> waited = (*store)->wait(Keys{"k"}, milliseconds(20'000));
  REQUIRE_FALSE(waited.has_value());
  CHECK(waited.error().code == EPROTO);
  CHECK((*store)->set("k", "v").error().message == waited.error().message);
}

TEST_CASE("a reply of an impossible length is refused before any of it is stored") {
  ScriptedServer server([](int fd) {
    ScriptedServer::greet(fd);
    ScriptedServer::write(fd, Bytes().u64(UINT64_MAX));
    ScriptedServer::until_closed(fd);
  });
  auto store = connect_to(server.port(), milliseconds(20'000));
  REQUIRE(store.has_value());
  CHECK((*store)->compare_set("k", "", "v").error().code == EPROTO);
}

TEST_CASE("a server that dies in the middle of a reply is an error, not a hang") {
  ScriptedServer server([](int fd) {
    ScriptedServer::greet(fd);
    ScriptedServer::write(fd, Bytes().u64(10).text + "half");
  });
  auto store = connect_to(server.port(), milliseconds(20'000));
  REQUIRE(store.has_value());
  Result<std::string> got = (*store)->compare_set("k", "", "v");
  REQUIRE_FALSE(got.has_value());
  CHECK(got.error().code == ECONNRESET);
}

}  // namespace muster
