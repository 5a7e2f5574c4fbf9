// SPDX-License-Identifier: Apache-2.0
#include "store/server.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "store/server_fixture.h"
#include "store/trouble.h"

namespace muster {

TEST_CASE_FIXTURE(ServerTest, "a client is greeted and served") {
  TestPeer peer = greeted();
  peer.send(request::set("/k", "value"));
  CHECK(peer.ask(request::get("/k"), 13) == Bytes().str("value").text);
  CHECK(server->counters().connections == 1);
  CHECK(server->counters().keys == 1);
  CHECK(server->counters().requests == 3);
}

TEST_CASE_FIXTURE(ServerTest, "every kind of literal address can be listened on") {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"127.0.0.1", "127.0.0.1"},
      {"0.0.0.0", "127.0.0.1"},
      {"::1", "::1"},
      {"::", "127.0.0.1"},
      {"::", "::1"},
  };
  for (const auto& pair : pairs) {
    const auto& [address, from] = pair;
    CAPTURE(pair.first);
    if (address == "::1" || from == "::1") {
      UniqueFd probe(socket(AF_INET6, SOCK_STREAM, 0));
      Result<SocketAddress> at = SocketAddress::parse("::1", 0);
      if (!probe || bind(probe.get(), at->raw(), at->size()) != 0) continue;
    }
    listen(address);
    TestPeer peer(loop, server->port(), from);
    CHECK(peer.ask(request::validate().add(request::ping(1)), 4) == Bytes().u32(1).text);
  }
}

TEST_CASE_FIXTURE(ServerTest, "a port in use and a host name are errors that say so") {
  auto taken = StoreServer::listen(loop, "127.0.0.1", server->port(), {});
  REQUIRE_FALSE(taken.has_value());
  CHECK(taken.error().code == EADDRINUSE);
  CHECK(taken.error().message ==
        "store: bind 127.0.0.1:" + std::to_string(server->port()) + ": Address already in use");
  auto named = StoreServer::listen(loop, "localhost", 0, {});
  REQUIRE_FALSE(named.has_value());
  CHECK(named.error().message == "store: 'localhost': not an IPv4 or IPv6 address");
}

TEST_CASE_FIXTURE(ServerTest, "a client that stops in the middle of a request stalls nobody") {
  TestPeer slow = greeted();
  const std::string request = request::set("/slow", std::string(1'000'000, 'v'));
  slow.send(request.substr(0, 700'000));
  TestPeer quick = greeted();
  CHECK(quick.ask(request::add("/n", 1), 8) == Bytes().i64(1).text);
  CHECK(quick.ask(request::check({"/slow"}), 1) == Bytes().u8(1).text);
  slow.send(request.substr(700'000));
  CHECK(quick.ask(request::wait({"/slow"}), 1) == Bytes().u8(0).text);
}

TEST_CASE_FIXTURE(ServerTest, "a WAIT of one client is answered by the SET of another") {
  TestPeer waiter = greeted(41);
  TestPeer setter = greeted(42);
  waiter.send(request::wait({"/a", "/b"}));
  REQUIRE(run_until([&] { return server->counters().waiters == 1; }));
  setter.send(request::set("/a", "1"));
  REQUIRE(run_until([&] { return server->counters().keys == 1; }));
  std::vector<StoreWaiter> waiters = server->waiters();
  REQUIRE(waiters.size() == 1);
  CHECK(waiters[0].pid == 41);
  CHECK(waiters[0].keys == std::vector<std::string>{"/b"});
  CHECK(waiters[0].peer.starts_with("127.0.0.1:"));
  CHECK(waiters[0].since <= Clock::now());
  CHECK_FALSE(waiters[0].barrier);
  setter.send(request::set("/b", "2"));
  CHECK(waiter.receive(1) == Bytes().u8(0).text);
  CHECK(server->waiters().empty());
}

TEST_CASE_FIXTURE(ServerTest, "garbage costs its connection and one line that names the peer") {
  TestPeer good = greeted();
  TestPeer scanner = connect();
  scanner.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(scanner.closed());
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("store: connection of 127.0.0.1:"));
  CHECK(lines[0].ends_with("closed: not a store client: it began with byte 71"));
  CHECK(good.ask(request::num_keys(), 8) == Bytes().i64(0).text);
}

TEST_CASE_FIXTURE(ServerTest, "a peer that leaves early is said, one that leaves in order is not") {
  TestPeer silent = connect();
  REQUIRE(run_until([&] { return server->counters().connections == 1; }));
  silent.leave();
  REQUIRE(run_until([&] { return server->counters().connections == 0; }));
  CHECK(lines.size() == 1);
  TestPeer cut = greeted(99);
  cut.send(request::set("/k", "value").text.substr(0, 5));
  cut.leave();
  REQUIRE(run_until([&] { return server->counters().connections == 0; }));
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].ends_with("(pid 99) closed: it left in the middle of a request"));
  TestPeer orderly = greeted();
  orderly.leave();
  REQUIRE(run_until([&] { return server->counters().connections == 0; }));
  CHECK(lines.size() == 2);
}

TEST_CASE_FIXTURE(ServerTest, "a silent or half-closed connection costs nothing but itself") {
  TestPeer silent = connect();
  TestPeer waiting = greeted();
  waiting.send(request::wait({"/k"}));
  TestPeer other = greeted();
  CHECK(other.ask(request::add("/n", 1), 8) == Bytes().i64(1).text);
  shutdown(waiting.fd(), SHUT_WR);
  CHECK(waiting.closed());
  CHECK(server->counters().waiters == 0);
  CHECK(other.ask(request::set("/k", "").add(request::add("/n", 1)), 8) == Bytes().i64(2).text);
  CHECK(server->counters().connections == 2);
  CHECK(lines.empty());
}

TEST_CASE_FIXTURE(ServerTest, "a worker that is killed resets its connection, which is no news") {
  TestPeer killed = greeted();
  killed.send(request::wait({"/k"}));
  REQUIRE(run_until([&] { return server->counters().waiters == 1; }));
  linger at_once{1, 0};
  setsockopt(killed.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  killed.leave();
  CHECK(run_until([&] { return server->counters().connections == 0; }));
  CHECK(server->counters().waiters == 0);
  CHECK(lines.empty());
}

TEST_CASE_FIXTURE(ServerTest, "a peer that dies with replies unread is let go") {
  TestPeer lazy = greeted();
  lazy.send(request::set("/k", std::string(1'000'000, 'v')));
  Bytes requests;
  for (int i = 0; i < 50; ++i)
    requests.add(request::get("/k"));
  lazy.send(requests);
  TestPeer other = greeted();
  CHECK(other.ask(request::add("/n", 1), 8) == Bytes().i64(1).text);
  lazy.leave();
  CHECK(run_until([&] { return server->counters().connections == 1; }));
}

TEST_CASE_FIXTURE(ServerTest, "a thousand bad peers are a handful of lines") {
  for (int i = 0; i < 1000; ++i) {
    TestPeer peer = connect();
    peer.send("x");
    REQUIRE(peer.closed());
  }
  CHECK(lines.size() == TroubleLines::kBurst);
  CHECK(server->counters().bad_peers == 1000);
}

TEST_CASE_FIXTURE(LoopTest, "held back lines are counted in one line at the window's end") {
  std::vector<std::string> lines;
  TroubleLines trouble(
      loop, [&](const std::string& line) { lines.push_back(line); }, Milliseconds(20));
  for (int i = 0; i < TroubleLines::kBurst + 3; ++i)
    trouble.say("line");
  CHECK(lines.size() == TroubleLines::kBurst);
  loop.post([] {});
  CHECK(run_until([&] { return lines.size() == TroubleLines::kBurst + 1; }));
  CHECK(lines.back() == "store: 3 more bad connections were closed");
}

TEST_CASE_FIXTURE(ServerTest, "a reset closes everyone, empties the store and keeps the port") {
  TestPeer old = greeted();
  old.send(request::set("/dead", "key").add(request::queue_push("/q", "x")));
  TestPeer waiter = greeted();
  waiter.send(request::wait({"/never"}));
  REQUIRE(
      run_until([&] { return server->counters().waiters == 1 && server->counters().keys == 1; }));
  const int port = server->port();
  server->reset();
  CHECK(server->port() == port);
  CHECK(server->counters().connections == 0);
  CHECK(server->waiters().empty());
  CHECK(old.closed());
  CHECK(waiter.closed());
  TestPeer fresh = greeted();
  CHECK(fresh.ask(request::num_keys(), 8) == Bytes().i64(0).text);
  CHECK(fresh.ask(request::check({"/dead"}), 1) == Bytes().u8(1).text);
  CHECK(fresh.ask(request::queue_length("/q"), 8) == Bytes().i64(0).text);
  CHECK(server->counters().bytes == 0);
}

TEST_CASE_FIXTURE(ServerTest,
                  "what an old peer sent and nobody read yet does not survive a reset") {
  TestPeer unread = greeted();
  TestPeer unaccepted = connect();  // the loop does not turn before the reset
  unaccepted.send_some(request::validate().add(request::set("/dead", "1")).text);
  unread.send_some(request::set("/dead", "2").text);
  server->reset();
  CHECK(unaccepted.closed());
  CHECK(unread.closed());
  TestPeer fresh = greeted();
  CHECK(fresh.ask(request::num_keys(), 8) == Bytes().i64(0).text);
}

TEST_CASE_FIXTURE(ServerTest, "a key set by the owner is a key like others") {
  TestPeer waiter = greeted();
  waiter.send(request::wait({"/muster/stop_requested"}));
  TestPeer watcher = connect();
  CHECK(watcher.ask(Bytes().u8(7).str("/muster/stop_requested"), 1) == Bytes().u8(3).text);
  REQUIRE(run_until([&] { return server->counters().waiters == 1; }));
  CHECK(server->set("/muster/stop_requested", "SIGTERM"));
  CHECK(waiter.receive(1) == Bytes().u8(0).text);
  const std::string notice =
      Bytes().u8(1).str("/muster/stop_requested").str("").str("SIGTERM").text;
  CHECK(watcher.receive(notice.size()) == notice);
  CHECK(waiter.ask(request::get("/muster/stop_requested"), 15) == Bytes().str("SIGTERM").text);
  CHECK(server->find("/muster/stop_requested") == "SIGTERM");
  CHECK_FALSE(server->find("/muster/nothing").has_value());
  CHECK(server->counters().waiters == 0);
}

TEST_CASE_FIXTURE(ServerTest, "an address that is not ours is told from a port in use") {
  // Documentation's own network, nobody's.
  auto foreign = StoreServer::listen(loop, "192.0.2.1", 0, {});
  REQUIRE_FALSE(foreign.has_value());
  CHECK(foreign.error().code == EADDRNOTAVAIL);
}

TEST_CASE_FIXTURE(ServerTest,
                  "a peer that does not read waits for itself alone and loses nothing") {
  constexpr int kRequests = 400;
  const std::string value(100'000, 'v');
  TestPeer lazy = greeted();
  lazy.send(request::set("/k", value));
  Bytes requests;
  for (int i = 0; i < kRequests; ++i)
    requests.add(request::get("/k"));
  lazy.send(requests);
  TestPeer other = greeted();
  CHECK(other.ask(request::add("/n", 1), 8) == Bytes().i64(1).text);
  // Neither the kernel's buffers nor ours take 40 MB: most requests must still be unanswered.
  CHECK(server->counters().requests < 300);
  std::string expected;
  for (int i = 0; i < kRequests; ++i)
    expected += Bytes().str(value).text;
  CHECK(lazy.receive(expected.size()) == expected);
}

TEST_CASE_FIXTURE(ServerTest, "a peer that does not read is not read from either") {
  listen("127.0.0.1", {.pause_at = 64 << 10});
  TestPeer lazy = greeted();
  lazy.send(request::set("/k", std::string(100'000, 'v')));
  const std::string request = Bytes(request::get("/k")).text;
  std::string requests;
  while (requests.size() < (1 << 20))
    requests += request;
  constexpr size_t kAll = size_t{64} << 20;
  size_t sent = 0;
  for (int turn = 0; turn < 500 && sent < kAll; ++turn) {
    sent += lazy.send_some(std::string_view(requests).substr(sent % request.size()));
    bool turned = false;
    loop.post([&] { turned = true; });
    REQUIRE(run_until([&] { return turned; }));
  }
  // The rest waits in the kernel, which slows the peer down.
  CHECK(sent < kAll);
}

TEST_CASE_FIXTURE(ServerTest, "a reply beyond all bounds closes its connection") {
  listen("127.0.0.1", {.pause_at = 1000, .max_unsent = 1'000'000});
  TestPeer greedy = greeted();
  greedy.send(request::set("/k", std::string(1'000'000, 'v')));
  Bytes request = Bytes().u8(10).u64(64);
  for (int i = 0; i < 64; ++i)
    request.str("/k");
  greedy.send_some(request.text);
  CHECK(run_until([&] { return server->counters().connections == 0; }));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].ends_with("closed: it does not read its replies"));
}

TEST_CASE_FIXTURE(ServerTest, "a watcher that does not read its notices is dropped") {
  listen("127.0.0.1", {.pause_at = 1 << 20, .max_unsent = 4 << 20});
  TestPeer watcher = connect();
  CHECK(watcher.ask(Bytes().u8(7).str("/k"), 1) == Bytes().u8(3).text);
  TestPeer setter = greeted();
  for (int i = 0; i < 100 && server->counters().connections == 2; ++i) {
    setter.send(request::set("/k", std::string(500'000, 'v')));
    CHECK(setter.ask(request::num_keys(), 8) == Bytes().i64(1).text);
  }
  CHECK(server->counters().connections == 1);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].ends_with("closed: it does not read its notices"));
}

TEST_CASE_FIXTURE(ServerTest, "running out of descriptors is said once, and who waited is served") {
  // UBSan needs descriptors of its own the first time it sees a type: show it all of them now.
  greeted();
  bool fired = false;
  Owned<Timer> warm_up = Timer::start(loop, Milliseconds(1), [&] { fired = true; });
  warm_up->unref();
  REQUIRE(run_until([&] { return fired && server->counters().connections == 0; }));
  warm_up.reset();
  constexpr int kPeers = 20;
  std::vector<TestPeer> peers;
  for (int i = 0; i < kPeers; ++i)
    peers.push_back(connect());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit tight = before;
  UniqueFd highest(dup(0));
  tight.rlim_cur = static_cast<rlim_t>(highest.get()) + 5;
  highest.reset();
  setrlimit(RLIMIT_NOFILE, &tight);
  CHECK(run_until([&] { return !lines.empty(); }));
  bool later = false;
  Owned<Timer> timer = Timer::start(loop, Milliseconds(350), [&] { later = true; });
  run_until([&] { return later; });
  CHECK(lines.size() == 1);
  CHECK(lines[0].find("Too many open files; new connections wait") != std::string::npos);
  CHECK(server->counters().connections < kPeers);
  setrlimit(RLIMIT_NOFILE, &before);
  for (TestPeer& peer : peers)
    CHECK(peer.ask(request::validate().add(request::ping(3)), 4) == Bytes().u32(3).text);
}

TEST_CASE_FIXTURE(ServerTest, "hundreds of clients meet at one barrier") {
  constexpr int kPeers = 300;
  std::vector<TestPeer> peers;
  for (int i = 0; i < kPeers; ++i)
    peers.push_back(greeted(static_cast<uint32_t>(i)));
  for (TestPeer& peer : peers)
    peer.send(request::barrier("/b", kPeers));
  for (TestPeer& peer : peers)
    CHECK(peer.receive(1) == Bytes().u8(0).text);
}

TEST_CASE_FIXTURE(ServerTest, "what a client waited for when it ended is known by its pid") {
  {
    TestPeer killed = greeted(11);
    killed.send(request::wait({"/a", "/b"}));
    TestPeer gave_up = greeted(12);
    gave_up.send(request::wait({"/c"}));
    CHECK(run_until([&] { return server->counters().waiters == 2; }));
    CHECK(gave_up.ask(request::cancel_wait(), 1) == Bytes().u8(1).text);
    TestPeer went_on = greeted(13);
    went_on.send(request::wait({"/d"}));
    CHECK(run_until([&] { return server->counters().waiters == 2; }));
    CHECK(went_on.ask(request::cancel_wait(), 1) == Bytes().u8(1).text);
    CHECK(went_on.ask(request::num_keys(), 8) == Bytes().i64(0).text);
    CHECK(server->left_waiting(11) == "");  // it still waits
  }
  CHECK(run_until([&] { return server->counters().connections == 0; }));
  CHECK(server->left_waiting(11) == "/a and 1 more");
  CHECK(server->left_waiting(12) == "/c");
  CHECK(server->left_waiting(13) == "");
  server->reset();
  CHECK(server->left_waiting(11) == "");
}

TEST_CASE_FIXTURE(ServerTest,
                  "a long key that somebody waited for is cut, and very many are not kept") {
  auto leave = [&](uint32_t pid, const std::string& key) {
    {
      TestPeer peer = greeted(pid);
      peer.send(request::wait({key}));
      CHECK(run_until([&] { return server->counters().waiters == 1; }));
    }
    CHECK(run_until([&] { return server->counters().connections == 0; }));
  };
  leave(1, std::string(4000, 'k'));
  CHECK(server->left_waiting(1).size() == 256);
  for (uint32_t pid = 2; pid <= 1024; ++pid)
    leave(pid, "/k");
  leave(1025, "/k");
  CHECK(server->left_waiting(1024) == "/k");
  CHECK(server->left_waiting(1025) == "");
  leave(1, "/new");
  CHECK(server->left_waiting(1) == "/new");
}

}  // namespace muster
