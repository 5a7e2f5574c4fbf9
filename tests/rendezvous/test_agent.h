// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <deque>
#include <string>

#include "store/test_peer.h"
#include "supervisor/rendezvous/auth.h"
#include "supervisor/rendezvous/heart.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

inline NodeFacts facts_of(const std::string& name, int workers = 1) {
  NodeFacts facts;
  facts.id = "id-" + name;
  facts.host = name;
  facts.pid = 100;
  facts.workers = workers;
  facts.terms.min_nodes = 2;
  facts.terms.max_nodes = 2;
  facts.terms.max_restarts = 3;
  return facts;
}

// An agent by hand: a plain socket that says what the test wants.
class TestAgent {
 public:
  TestAgent(Loop& loop, int port, const std::string& address = "127.0.0.1")
      : peer_(loop, port, address) {
    peer_.send(std::string(kControlPreamble));
  }

  void say(AgentMessage message) { peer_.send(encode(std::move(message))); }
  void say_raw(const std::string& bytes) { peer_.send(bytes); }

  // The next message, with the loop turning.
  HostMessage hear() {
    Frame frame;
    FrameReader::Answer answer;
    while ((answer = reader_.next(&frame)) == FrameReader::Answer::kNeedMore) {
      const std::string bytes = peer_.receive(1);
      REQUIRE_MESSAGE(!bytes.empty(), "the coordinator hung up");
      reader_.feed(bytes);
    }
    REQUIRE(answer == FrameReader::Answer::kFrame);
    Result<HostMessage> message = decode_host_message(frame);
    REQUIRE(message);
    return std::move(*message);
  }

  // The next message of that kind; others of the kinds that come at any time are skipped.
  template <typename T>
  T hear_a() {
    for (;;) {
      HostMessage message = hear();
      if (std::holds_alternative<T>(message)) return std::get<T>(std::move(message));
      INFO(message_name(message));
      REQUIRE((std::holds_alternative<event::NodesAwaited>(message) ||
               std::holds_alternative<message::HeartbeatEcho>(message)));
    }
  }

  bool closed() { return peer_.closed(); }
  void leave() { peer_.leave(); }
  TestPeer& peer() { return peer_; }

  message::Challenge greet(const std::string& run_id, const std::string& token = "") {
    nonce_ = token.empty() ? "" : new_nonce();
    say(message::Hello{kControlVersion, run_id, nonce_, !token.empty()});
    return hear_a<message::Challenge>();
  }

  void ask_to_join(const NodeFacts& facts, const std::string& run_id, const std::string& token = "",
                   int64_t clock_offset_us = 0) {
    const message::Challenge challenge = greet(run_id, token);
    const Exchange exchange{run_id, nonce_, challenge.nonce};
    CHECK(is_proof(challenge.proof, token, Prover::kHost, exchange));
    say(message::Join{facts, make_proof(token, Prover::kAgent, exchange), clock_offset_us});
  }

  message::Welcome join(const NodeFacts& facts, const std::string& run_id,
                        const std::string& token = "") {
    ask_to_join(facts, run_id, token);
    return hear_a<message::Welcome>();
  }

 private:
  TestPeer peer_;
  FrameReader reader_{kMaxFrame};
  std::string nonce_;
};

}  // namespace muster
