// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/approach.h"

#include <doctest/doctest.h>

#include <optional>

#include "loop/loop_test.h"
#include "rendezvous/scripted_peer.h"

namespace muster {

namespace {

using Obstacle = Approach::Obstacle;

struct ApproachTest : LoopTest {
  std::optional<Approach::Joined> joined;
  std::optional<Approach::Failure> failure;
  std::unique_ptr<Approach> approach;
  std::string token;

  void go(std::vector<std::string> addresses, int port,
          Milliseconds patience = Milliseconds(10'000)) {
    approach = std::make_unique<Approach>(
        loop, Approach::Target{std::move(addresses), port}, introduction_of("node-b", token),
        patience,
        Approach::Callbacks{[this](Approach::Joined j) { joined = std::move(j); },
                            [this](const Approach::Failure& f) { failure = f; }});
    REQUIRE(run_until([this] { return joined || failure; }));
  }

  // A port of 127.0.0.1 where nobody listens.
  int dead_port() {
    ScriptedPeer peer(loop);
    return peer.port();
  }
};

}  // namespace

TEST_CASE_FIXTURE(ApproachTest, "an approach ends with the welcome, and says who it is") {
  ScriptedPeer peer(loop);
  peer.be_a_coordinator({true, false, 500, 7});
  go({"127.0.0.1"}, peer.port());
  REQUIRE(joined);
  CHECK(joined->welcome.spare);
  CHECK(joined->welcome.heartbeat_ms == 500);
  CHECK(joined->target.addresses == std::vector<std::string>{"127.0.0.1"});
  REQUIRE(peer.last<message::Hello>() != nullptr);
  CHECK(peer.last<message::Hello>()->run_id == "run-1");
  CHECK(peer.last<message::Join>()->facts.host == "node-b");
}

TEST_CASE_FIXTURE(ApproachTest, "nobody listens: refused") {
  go({"127.0.0.1"}, dead_port());
  REQUIRE(failure);
  CHECK(failure->obstacle == Obstacle::kRefused);
  CHECK(failure->why == "connection refused");
}

TEST_CASE_FIXTURE(ApproachTest, "the next address is tried, and the farthest obstacle is told") {
  ScriptedPeer peer(loop);
  peer.be_a_coordinator();
  SUBCASE("one of them answers") {
    go({"not an address", "127.0.0.2", "127.0.0.1"}, peer.port());
    REQUIRE(joined);
    CHECK(joined->target.addresses == std::vector<std::string>{"127.0.0.1"});
  }
  SUBCASE("none does") {
    peer.hang_up_at_once();
    go({"127.0.0.2", "127.0.0.1", "127.0.0.3"}, peer.port());
    REQUIRE(failure);
    CHECK(failure->obstacle == Obstacle::kHungUp);
    CHECK(failure->why.find("(127.0.0.1)") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(ApproachTest, "a listener that says nothing is no answer, after a bounded time") {
  ScriptedPeer peer(loop);
  go({"127.0.0.1"}, peer.port(), Milliseconds(50));
  REQUIRE(failure);
  CHECK(failure->obstacle == Obstacle::kNoAnswer);
  CHECK(failure->why.starts_with("no answer"));
}

TEST_CASE_FIXTURE(ApproachTest, "something else at the port is said to be that") {
  ScriptedPeer peer(loop);
  SUBCASE("a web server") {
    peer.greet_with("HTTP/1.1 400 Bad Request\r\n\r\n");
    go({"127.0.0.1"}, peer.port());
    CHECK(failure->obstacle == Obstacle::kStrange);
    CHECK(failure->why.ends_with("(it says 'HTTP/1.1 400 Bad Request')"));
  }
  SUBCASE("one whose bytes are no text") {
    peer.greet_with(std::string("\xff\xff\xff\x7f\x1b[2J", 8));
    go({"127.0.0.1"}, peer.port());
    CHECK(failure->obstacle == Obstacle::kStrange);
    CHECK(failure->why.find('\x1b') == std::string::npos);
  }
  SUBCASE("one that hangs up") {
    peer.hang_up_at_once();
    go({"127.0.0.1"}, peer.port());
    CHECK(failure->obstacle == Obstacle::kHungUp);
  }
  SUBCASE("a welcome before the challenge") {
    peer.greet_with(encode(HostMessage(message::Welcome{})));
    go({"127.0.0.1"}, peer.port());
    CHECK(failure->obstacle == Obstacle::kStrange);
  }
  REQUIRE(failure);
  CHECK(failure->why.starts_with("wrong protocol: "));
}

TEST_CASE_FIXTURE(ApproachTest, "a frame beyond the limit of a handshake ends it") {
  ScriptedPeer peer(loop);
  std::string frame;
  append_frame(frame, 1, std::string(kMaxHandshakeFrame, ' '));
  peer.greet_with(frame);
  go({"127.0.0.1"}, peer.port());
  REQUIRE(failure);
  CHECK(failure->obstacle == Obstacle::kStrange);
}

TEST_CASE_FIXTURE(ApproachTest, "another version is said with both numbers") {
  ScriptedPeer peer(loop);
  peer.greet_with(encode(HostMessage(message::Challenge{kControlVersion + 1, new_nonce(), "", 0})));
  go({"127.0.0.1"}, peer.port());
  REQUIRE(failure);
  CHECK(failure->obstacle == Obstacle::kStrange);
  CHECK(failure->why.find(std::to_string(kControlVersion + 1)) != std::string::npos);
}

TEST_CASE_FIXTURE(ApproachTest, "a coordinator that does not know our token gets no join") {
  ScriptedPeer peer(loop);
  token = "sixteen letters!";
  peer.greet_with(encode(
      HostMessage(message::Challenge{kControlVersion, new_nonce(), std::string(64, '0'), 0})));
  go({"127.0.0.1"}, peer.port());
  REQUIRE(failure);
  CHECK(failure->obstacle == Obstacle::kStrange);
  CHECK(failure->why.starts_with("wrong token"));
  CHECK(peer.count<message::Join>() == 0);
}

TEST_CASE_FIXTURE(ApproachTest, "a refusal is told in the coordinator's words") {
  ScriptedPeer peer(loop);
  bool final = false;
  SUBCASE("for now") {}
  SUBCASE("for good") {
    final = true;
  }
  peer.greet_with(encode(HostMessage(message::Refuse{"run 'other' meets here", final})));
  go({"127.0.0.1"}, peer.port());
  REQUIRE(failure);
  CHECK(failure->obstacle == (final ? Obstacle::kFinal : Obstacle::kTurnedAway));
  CHECK(failure->why == "run 'other' meets here");
}

TEST_CASE_FIXTURE(ApproachTest, "what comes with the welcome is for the next owner") {
  ScriptedPeer peer(loop);
  peer.greet_with(encode(HostMessage(message::Challenge{kControlVersion, new_nonce(), "", 0})) +
                  encode(HostMessage(message::Welcome{})) + encode(HostMessage(JobEnd{})));
  std::vector<HostMessage> later;
  std::unique_ptr<ControlStream> stream;
  Approach one(
      loop, {{"127.0.0.1"}, peer.port()}, introduction_of("node-b"), Milliseconds(10'000),
      {[&](Approach::Joined j) {
         stream = std::move(j.stream);
         stream->set_callbacks({[&](HostMessage m) { later.push_back(std::move(m)); }, {}, {}});
       },
       [](const Approach::Failure& f) { FAIL_CHECK(f.why); }});
  REQUIRE(run_until([&] { return !later.empty(); }));
  CHECK(std::holds_alternative<JobEnd>(later[0]));
}

TEST_CASE_FIXTURE(ApproachTest, "an approach that is dropped says nothing more") {
  ScriptedPeer peer(loop);
  bool called = false;
  auto one = std::make_unique<Approach>(
      loop, Approach::Target{{"127.0.0.1"}, peer.port()}, introduction_of("node-b"),
      Milliseconds(10'000),
      Approach::Callbacks{[&](Approach::Joined) { called = true; },
                          [&](const Approach::Failure&) { called = true; }});
  REQUIRE(run_until([&] { return peer.count<message::Hello>() == 1; }));
  one.reset();
  REQUIRE(run_until([&] { return peer.ended(); }));
  CHECK(!called);
}

}  // namespace muster
