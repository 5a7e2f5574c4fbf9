// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/doorkeeper.h"

#include <doctest/doctest.h>

#include "loop/loop_test.h"
#include "loop/tcp_listener.h"
#include "rendezvous/test_agent.h"

namespace muster {

namespace {

const std::string kRun = "run-1";
const std::string kToken = "sesame sesame sesame";

struct DoorTest : LoopTest {
  Doorkeeper::Settings settings{kRun, "", Milliseconds(10'000), 16};
  std::vector<std::string> lines;
  std::vector<std::string> joined;
  std::vector<std::unique_ptr<ControlPeer>> peers;
  std::unique_ptr<char[]> buffer = std::make_unique<char[]>(4096);
  std::unique_ptr<Doorkeeper> keeper;
  Owned<TcpListener> listener;

  // The agents that came in say nothing here.
  struct Silent final : ControlPeer::Owner {
    void on_message(AgentMessage) override {}
    void on_end(const std::string&) override {}
  } silent;

  void start() {
    keeper = std::make_unique<Doorkeeper>(
        loop, settings,
        Doorkeeper::Callbacks{[this](std::unique_ptr<ControlPeer> peer, message::Join join) {
                                peer->set_owner(&silent);
                                peers.push_back(std::move(peer));
                                joined.push_back(join.facts.host);
                              },
                              [this](const std::string& line) { lines.push_back(line); }});
    auto listening = TcpListener::listen(
        loop, "127.0.0.1", 0,
        {[this](UniqueFd socket, const SocketAddress& peer) {
           keeper->take(std::move(socket), kControlPreamble, peer, {buffer.get(), 4096});
         },
         [](const std::string&) {}});
    REQUIRE(listening);
    listener = std::move(*listening);
  }

  // The listener has taken the preamble for said, so it is not sent.
  TestPeer connect() { return TestPeer(loop, listener->port()); }

  message::Refuse refusal(TestPeer& peer) {
    FrameReader reader(kMaxFrame);
    Frame frame;
    while (reader.next(&frame) == FrameReader::Answer::kNeedMore)
      reader.feed(peer.receive(1));
    Result<HostMessage> message = decode_host_message(frame);
    REQUIRE(message);
    REQUIRE(std::holds_alternative<message::Refuse>(*message));
    return std::get<message::Refuse>(*message);
  }

  message::Challenge challenge(TestPeer& peer) {
    FrameReader reader(kMaxFrame);
    Frame frame;
    while (reader.next(&frame) == FrameReader::Answer::kNeedMore)
      reader.feed(peer.receive(1));
    Result<HostMessage> message = decode_host_message(frame);
    REQUIRE(message);
    REQUIRE(std::holds_alternative<message::Challenge>(*message));
    return std::get<message::Challenge>(*message);
  }

  bool said(const std::string& part) {
    return run_until([&] {
      for (const std::string& line : lines)
        if (line.find(part) != std::string::npos) return true;
      return false;
    });
  }
};

std::string hello(const std::string& run = kRun, const std::string& nonce = "",
                  bool has_token = false, int version = kControlVersion) {
  return encode(AgentMessage(message::Hello{version, run, nonce, has_token}));
}

std::string join(const std::string& proof = "") {
  return encode(AgentMessage(message::Join{facts_of("b"), proof, 0}));
}

}  // namespace

TEST_CASE_FIXTURE(DoorTest, "an agent of the run gets in, however its bytes arrive") {
  start();
  const std::string bytes = hello() + join();
  SUBCASE("in one breath") {
    TestPeer peer = connect();
    peer.send(bytes);
    CHECK(run_until([&] { return joined.size() == 1; }));
  }
  SUBCASE("byte by byte") {
    TestPeer peer = connect();
    for (char byte : bytes) {
      peer.send(std::string(1, byte));
      loop.run_until([] { return false; }, Milliseconds(0));
    }
    CHECK(run_until([&] { return joined.size() == 1; }));
  }
  CHECK(keeper->size() == 0);
  CHECK(lines.empty());
}

TEST_CASE_FIXTURE(DoorTest, "with a token each side proves that it knows it") {
  settings.token = kToken;
  start();
  TestPeer peer = connect();
  const std::string nonce = new_nonce();
  peer.send(hello(kRun, nonce, true));
  const message::Challenge asked = challenge(peer);
  const Exchange exchange{kRun, nonce, asked.nonce};
  CHECK(is_proof(asked.proof, kToken, Prover::kHost, exchange));
  SUBCASE("the right proof") {
    peer.send(join(make_proof(kToken, Prover::kAgent, exchange)));
    CHECK(run_until([&] { return joined.size() == 1; }));
  }
  SUBCASE("an agent that finds ours wrong says so and goes") {
    peer.send(encode(AgentMessage(message::Leave{})));
    CHECK(peer.closed());
    CHECK(said("closed: this job's token (MUSTER_TOKEN) is not the node's"));
  }
  SUBCASE("another token's, the other side's, or none") {
    std::string proof;
    SUBCASE("another") {
      proof = make_proof(kToken + "x", Prover::kAgent, exchange);
    }
    SUBCASE("reflected") {
      proof = asked.proof;
    }
    SUBCASE("none") {}
    peer.send(join(proof));
    const message::Refuse refuse = refusal(peer);
    CHECK(refuse.final);
    CHECK(refuse.reason == "this node's token (MUSTER_TOKEN) is not the job's");
    CHECK(joined.empty());
    CHECK(said("refused: this node's token"));
  }
}

TEST_CASE_FIXTURE(DoorTest, "a recorded handshake is of no use again") {
  settings.token = kToken;
  start();
  const std::string nonce = new_nonce();
  TestPeer first = connect();
  first.send(hello(kRun, nonce, true));
  const std::string recorded =
      join(make_proof(kToken, Prover::kAgent, {kRun, nonce, challenge(first).nonce}));
  TestPeer second = connect();
  second.send(hello(kRun, nonce, true));
  challenge(second);
  second.send(recorded);
  CHECK(refusal(second).final);
  CHECK(joined.empty());
}

TEST_CASE_FIXTURE(DoorTest, "a token on one side only is refused and said") {
  SUBCASE("the job's") {
    settings.token = kToken;
    start();
    TestPeer peer = connect();
    peer.send(hello());
    const message::Refuse refuse = refusal(peer);
    CHECK(refuse.final);
    CHECK(refuse.reason == "the job has a token (MUSTER_TOKEN), this node was started without one");
  }
  SUBCASE("the node's") {
    start();
    TestPeer peer = connect();
    peer.send(hello(kRun, new_nonce(), true));
    const message::Refuse refuse = refusal(peer);
    CHECK(refuse.final);
    CHECK(refuse.reason == "this node was started with a token (MUSTER_TOKEN), the job has none");
  }
  CHECK(joined.empty());
}

TEST_CASE_FIXTURE(DoorTest, "another run and another version are told so, and may try again") {
  start();
  TestPeer peer = connect();
  SUBCASE("run") {
    peer.send(hello("run-2"));
    const message::Refuse refuse = refusal(peer);
    CHECK_FALSE(refuse.final);
    CHECK(refuse.reason == "the job at this endpoint has the run id 'run-1', not 'run-2'");
  }
  SUBCASE("version") {
    peer.send(hello(kRun, "", false, 2));
    const message::Refuse refuse = refusal(peer);
    CHECK_FALSE(refuse.final);
    CHECK(
        refuse.reason ==
        "the coordinator speaks version 4 of the control protocol, this node version 2: all nodes "
        "of a job must have the same muster");
  }
  CHECK(joined.empty());
}

TEST_CASE_FIXTURE(DoorTest, "who has no token does not learn the run id") {
  settings.token = kToken;
  start();
  TestPeer peer = connect();
  peer.send(hello("run-2"));
  CHECK(refusal(peer).reason.find(kRun) == std::string::npos);
}

TEST_CASE_FIXTURE(DoorTest, "who says something else loses its connection, and a line says why") {
  start();
  TestPeer peer = connect();
  std::string why;
  SUBCASE("a join before the hello") {
    peer.send(join());
    why = "it sent join in the handshake";
  }
  SUBCASE("two hellos") {
    peer.send(hello() + hello());
    why = "it sent hello in the handshake";
  }
  SUBCASE("a large frame") {
    peer.send(std::string("\x01\x40\0\0", 4));
    why = "a frame of 16385 bytes, more than 16384";
  }
  SUBCASE("noise") {
    peer.send(std::string("\x02\0\0\0\x01x", 6));
    why = "hello: bad body";
  }
  SUBCASE("half a message") {
    peer.send(hello().substr(0, 9));
    loop.run_until([] { return false; }, Milliseconds(20));
    peer.leave();
    CHECK(said("it left in the middle of a message"));
    return;
  }
  CHECK(peer.closed());
  CHECK(said(why));
  CHECK(keeper->size() == 0);
}

TEST_CASE_FIXTURE(DoorTest, "a bad nonce is refused when there is a token") {
  settings.token = kToken;
  start();
  TestPeer peer = connect();
  peer.send(hello(kRun, "1", true));
  CHECK(peer.closed());
}

TEST_CASE_FIXTURE(DoorTest, "who does not finish in time is dropped, one after the other") {
  settings.patience = Milliseconds(60);
  start();
  TestPeer first = connect();
  REQUIRE(run_until([&] { return keeper->size() == 1; }));
  loop.run_until([] { return false; }, Milliseconds(30));
  TestPeer second = connect();
  second.send(hello());
  CHECK(first.closed());
  CHECK(second.closed());
  CHECK(keeper->size() == 0);
  CHECK(said("did not finish the handshake in time"));
}

TEST_CASE_FIXTURE(DoorTest, "beyond the limit the oldest gives way") {
  settings.max_strangers = 2;
  start();
  TestPeer first = connect();
  TestPeer second = connect();
  REQUIRE(run_until([&] { return keeper->size() == 2; }));
  TestPeer third = connect();
  CHECK(first.closed());
  CHECK(keeper->size() == 2);
  CHECK(said("too many connections are in the handshake"));
  second.send(hello() + join());
  CHECK(run_until([&] { return joined.size() == 1; }));
}

TEST_CASE_FIXTURE(DoorTest, "a flood of bad peers makes few lines") {
  start();
  for (int i = 0; i < 20; ++i) {
    TestPeer peer = connect();
    peer.send(join());
    CHECK(peer.closed());
  }
  CHECK(lines.size() == TroubleLines::kBurst);
}

TEST_CASE_FIXTURE(DoorTest, "what a stranger calls its run is made fit to show") {
  start();
  TestPeer peer = connect();
  peer.send(hello("\x1b[2Jred" + std::string(500, 'x')));
  CHECK(refusal(peer).reason.size() < 200);
  CHECK(said("not 'redxxx"));
}

}  // namespace muster
