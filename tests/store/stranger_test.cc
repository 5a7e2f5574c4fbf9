// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "loop/tcp_stream.h"
#include "store/server_fixture.h"
#include "store/wire.h"

namespace muster {

namespace {

struct Stranger {
  UniqueFd socket;
  std::string bytes;
  SocketAddress peer;
};

// A server that sends agents to somebody else and asks who may use the store.
struct StrangerTest : ServerTest {
  std::vector<Stranger> strangers;
  bool allowed = true;
  int asked = 0;

  StrangerTest() { listen_with({}); }

  void listen_with(StoreServer::Limits limits) {
    StoreServer::Callbacks callbacks;
    callbacks.on_trouble = [this](const std::string& line) { lines.push_back(line); };
    callbacks.on_stranger = [this](UniqueFd socket, std::string bytes, const SocketAddress& peer) {
      strangers.push_back({std::move(socket), std::move(bytes), peer});
    };
    callbacks.allow = [this](const SocketAddress& peer) {
      CHECK(peer.is_loopback());
      ++asked;
      return allowed;
    };
    auto listening = StoreServer::listen(loop, "127.0.0.1", 0, callbacks, limits);
    REQUIRE(listening.has_value());
    server = std::move(*listening);
  }

  void turn() {
    bool turned = false;
    loop.post([&] { turned = true; });
    REQUIRE(run_until([&] { return turned; }));
  }
};

}  // namespace

TEST_CASE_FIXTURE(StrangerTest, "an agent is handed over with all that it has sent") {
  TestPeer agent = connect();
  agent.send("MUSTER1\nand more");
  REQUIRE(run_until([&] { return strangers.size() == 1; }));
  CHECK(strangers[0].bytes == "MUSTER1\nand more");
  CHECK(strangers[0].peer.to_string() == SocketAddress::local(agent.fd()).to_string());
  CHECK(server->counters().connections == 0);
  std::vector<char> buffer(100);
  std::string received;
  auto stream = TcpStream::adopt(loop, std::move(strangers[0].socket), buffer,
                                 {[&](std::string_view bytes) { received += bytes; }, {}, {}});
  REQUIRE(stream.has_value());
  CHECK(agent.ask(" later", 0).empty());
  CHECK(run_until([&] { return received == " later"; }));
  (*stream)->write("answer");
  CHECK(agent.receive(6) == "answer");
  CHECK(greeted().ask(request::num_keys(), 8) == Bytes().i64(0).text);
  CHECK(lines.empty());
  CHECK(asked == 1);
}

TEST_CASE_FIXTURE(StrangerTest, "an agent's preamble may come byte by byte") {
  TestPeer agent = connect();
  for (char byte : std::string("MUSTER1\n")) {
    CHECK(strangers.empty());
    agent.send(std::string(1, byte));
    turn();
  }
  REQUIRE(run_until([&] { return strangers.size() == 1; }));
  CHECK(strangers[0].bytes == kControlPreamble);
}

TEST_CASE_FIXTURE(StrangerTest, "what only begins like an agent is a bad peer") {
  TestPeer other = connect();
  other.send("MUSTER2\n");
  CHECK(other.closed());
  TestPeer cut = connect();
  cut.send("MUST");
  REQUIRE(run_until([&] { return server->counters().accepted == 2; }));
  turn();
  cut.leave();
  REQUIRE(run_until([&] { return server->counters().connections == 0; }));
  CHECK(strangers.empty());
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].ends_with("closed: not a store client: it began with byte 77"));
  CHECK(lines[1].ends_with("closed: it left in the middle of a request"));
}

TEST_CASE_FIXTURE(ServerTest, "without anybody to hand it to an agent is a bad peer at once") {
  TestPeer agent = connect();
  agent.send("M");
  CHECK(agent.closed());
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].ends_with("closed: not a store client: it began with byte 77"));
}

TEST_CASE_FIXTURE(StrangerTest, "a client whose address is not allowed is sent away unserved") {
  allowed = false;
  TestPeer refused = connect();
  refused.send_some(request::validate().add(request::set("/k", "v")).text);
  CHECK(refused.closed());
  TestPeer legacy = connect();
  legacy.send_some(Bytes().u8(3).str("/n").i64(1).text);
  CHECK(legacy.closed());
  CHECK(server->counters().keys == 0);
  CHECK(server->counters().requests == 0);
  CHECK(server->counters().bad_peers == 2);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].ends_with("closed: its address is not allowed to use the store"));
  TestPeer agent = connect();
  agent.send("MUSTER1\n");
  CHECK(run_until([&] { return strangers.size() == 1; }));
  CHECK(asked == 2);
}

TEST_CASE_FIXTURE(StrangerTest, "whether a client may be served is asked once") {
  TestPeer peer = greeted();
  for (int i = 1; i < 5; ++i)
    CHECK(peer.ask(request::add("/n", 1), 8) == Bytes().i64(i).text);
  CHECK(asked == 1);
}

TEST_CASE_FIXTURE(StrangerTest, "a reset keeps agents, wherever they are on their way") {
  TestPeer handed = connect();
  handed.send("MUSTER1\n1");
  REQUIRE(run_until([&] { return strangers.size() == 1; }));
  TestPeer silent = connect();
  TestPeer partial = connect();
  partial.send("MUS");
  TestPeer client = greeted();
  REQUIRE(run_until([&] { return server->counters().connections == 3; }));
  turn();
  TestPeer unread = connect();  // the loop does not turn before the reset
  unread.send_some("MUSTER1\n4");
  TestPeer unaccepted = connect();
  server->reset();
  CHECK(client.closed());
  silent.send("MUSTER1\n2");
  partial.send("TER1\n3");
  unaccepted.send("MUSTER1\n5");
  REQUIRE(run_until([&] { return strangers.size() == 5; }));
  std::string numbers;
  for (const Stranger& stranger : strangers)
    numbers += stranger.bytes.back();
  std::ranges::sort(numbers);
  CHECK(numbers == "12345");
  CHECK(send(strangers[0].socket.get(), "x", 1, MSG_NOSIGNAL) == 1);
  CHECK(handed.receive(1) == "x");
  CHECK(lines.empty());
}

TEST_CASE_FIXTURE(StrangerTest, "no store client from before a reset is served, new ones are") {
  TestPeer silent = connect();
  REQUIRE(run_until([&] { return server->counters().connections == 1; }));
  TestPeer unaccepted = connect();
  unaccepted.send_some(request::validate().add(request::set("/old", "1")).text);
  TestPeer gone = connect();
  gone.leave();
  server->reset();
  server->reset();
  TestPeer fresh = connect();  // in the same queue, behind them
  fresh.send_some(request::validate().add(request::ping(5)).text);
  CHECK(fresh.receive(4) == Bytes().u32(5).text);
  CHECK(unaccepted.closed());
  silent.send(request::validate().add(request::set("/old", "2")));
  CHECK(silent.closed());
  CHECK(fresh.ask(request::num_keys(), 8) == Bytes().i64(0).text);
  CHECK(lines.empty());
  CHECK(server->counters().bad_peers == 0);
}

TEST_CASE_FIXTURE(ServerTest, "agents wait for an owner that is expected") {
  server->hold_strangers();
  TestPeer agent = connect();
  agent.send("MUSTER1\nfirst");
  CHECK(greeted().ask(request::num_keys(), 8) == Bytes().i64(0).text);
  agent.send(" second");
  std::string handed;
  UniqueFd kept;
  server->set_on_stranger([&](UniqueFd socket, std::string bytes, const SocketAddress&) {
    handed = std::move(bytes);
    kept = std::move(socket);
  });
  CHECK(handed.empty());  // never from inside the call
  REQUIRE(run_until([&] { return !handed.empty(); }));
  CHECK(handed == "MUSTER1\nfirst");
  char rest[7];
  CHECK(recv(kept.get(), rest, sizeof rest, 0) == 7);
  bool allowed = false;
  server->set_allow([&](const SocketAddress&) { return allowed; });
  TestPeer refused = connect();
  refused.send(request::validate());
  CHECK(refused.closed());
}

TEST_CASE_FIXTURE(StrangerTest, "who says nothing after a reset is let go in the end") {
  listen_with({.old_patience = Milliseconds(20)});
  TestPeer silent = connect();
  REQUIRE(run_until([&] { return server->counters().connections == 1; }));
  server->reset();
  TestPeer fresh = connect();
  CHECK(silent.closed());
  CHECK(fresh.ask(request::validate().add(request::ping(5)), 4) == Bytes().u32(5).text);
  CHECK(lines.empty());
}

}  // namespace muster
