// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "loop/result.h"
#include "supervisor/job/event.h"
#include "supervisor/rendezvous/forwarded_messages.h"
#include "supervisor/rendezvous/frames.h"
#include "supervisor/rendezvous/round.h"

namespace muster {

// What travels over a control connection. The values of round.h go as they are; the rest is here.
// docs/control-protocol.md says who sends what when.

inline constexpr int kControlVersion = 4;

// Longest run id; a longer one cannot meet anybody.
inline constexpr size_t kMaxRunId = 1024;
// Most events in one message; more are for the next.
inline constexpr size_t kMaxEventsPerMessage = 256;

namespace message {

// Agent to coordinator.
struct Hello {
  int version = kControlVersion;
  std::string run_id;
  std::string nonce;       // auth.h
  bool has_token = false;  // a node with a token and one without never make a job
};
struct Join {
  NodeFacts facts;
  std::string proof;            // "" without a token
  int64_t clock_offset_us = 0;  // as in Heartbeat, measured with the challenge
};
// Sent every interval, the first at once after the welcome. 21 bytes; answered by an echo.
struct Heartbeat {
  int64_t sent_us = 0;          // unix time on the agent's clock; comes back in the echo
  int64_t clock_offset_us = 0;  // the coordinator's clock minus the agent's, as last measured
};
// What happened to the sender's own workers, for those who watch the job at the coordinator.
struct Events {
  int attempt = 0;
  std::vector<EventBody> events;  // at most kMaxEventsPerMessage
};
struct StopRequest {
  event::SignalReceived signal;
  bool kill = false;
};
struct RestartRequest {
  std::string who;  // "HTTP from 127.0.0.1"
};
// Somebody wants to know where the workers of all nodes are.
struct EvidenceRequest {
  std::string why;  // "asked by HTTP from 127.0.0.1"
};
struct Leave {};    // its workers are gone, or never were; the connection ends now
struct Goodbye {};  // the answer to JobEnd

// Coordinator to agent.
struct Challenge {
  int version = kControlVersion;
  std::string nonce;
  std::string proof;    // that the coordinator knows the token; "" without one
  int64_t time_us = 0;  // unix time on the coordinator's clock
};
// The last message; the connection is closed behind it.
struct Refuse {
  std::string reason;
  bool final = false;  // no use in trying again
};
struct Welcome {
  bool spare = false;
  bool resumed = false;  // its workers are still part of the running attempt; else they must go
  int heartbeat_ms = 1000;
  int heartbeat_misses = 3;  // that many intervals of silence are the end, on both sides
};
struct HeartbeatEcho {
  int64_t sent_us = 0;  // the heartbeat's
  int64_t time_us = 0;  // unix time on the coordinator's clock
};
struct RestartRefused {
  std::string why;
};
// Each node of that attempt saves evidence (supervisor/stacks) and tells of it in an EvidenceSaved.
struct SaveEvidence {
  int attempt = 0;
  std::string why;
};

}  // namespace message

using AgentMessage =
    std::variant<message::Hello, message::Join, message::Heartbeat, FailureNotice, NodeOutcome,
                 message::Events, message::StopRequest, message::Leave, message::Goodbye,
                 message::Answer, message::Piece, message::AnswerEnd, message::AnswerBroken,
                 message::Samples, message::RestartRequest, message::EvidenceRequest>;

using HostMessage =
    std::variant<message::Challenge, message::Refuse, message::Welcome, message::HeartbeatEcho,
                 Assignment, StopOrder, AttemptVerdict, JobEnd, event::NodesAwaited,
                 message::Request, message::Credit, message::Cancel, message::Watch,
                 message::RestartRefused, message::SaveEvidence>;

// A whole frame. Text is made fit to show and cut to the limits of messages.cc, so that every
// message fits into kMaxFrame; lists are cut likewise. An Assignment travels without its nodes.
std::string encode(AgentMessage message);
std::string encode(HostMessage message);

// Keys that are missing keep their defaults and unknown ones are ignored. What is not a message, or
// has values out of range, is an error that says what is wrong. The same limits as for encode()
// hold: nothing of a decoded message drives a terminal or is longer than that.
Result<AgentMessage> decode_agent_message(const Frame& frame);
Result<HostMessage> decode_host_message(const Frame& frame);

// For the log: "hello", "join", ...
std::string_view message_name(const AgentMessage& message);
std::string_view message_name(const HostMessage& message);

// The offset of the coordinator's clock to ours when `theirs_us` came between these two of ours.
inline int64_t clock_offset_us(int64_t sent_us, int64_t theirs_us, int64_t received_us) {
  return theirs_us - (sent_us + (received_us - sent_us) / 2);
}

// When it happened, of which news has just come: what `told_us` says if that can be. A clock may
// have been set since its offset was measured, and news is not older than this.
inline constexpr int64_t kMaxNewsAgeUs = 5'000'000;
inline int64_t time_of_news_us(int64_t told_us, int64_t now_us) {
  const bool can_be = told_us > now_us - kMaxNewsAgeUs && told_us <= now_us;
  return can_be || told_us == 0 ? told_us : now_us;
}

}  // namespace muster
