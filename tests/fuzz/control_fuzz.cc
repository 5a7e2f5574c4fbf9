// SPDX-License-Identifier: Apache-2.0
//
// A control connection's bytes, without sockets. The first byte says who reads them: even, the
// coordinator; odd, an agent. They are fed whole and in pieces, which must make the same messages
// and end alike; and a message that was decoded says the same when it is sent on.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loop/check.h"
#include "supervisor/rendezvous/event_gate.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

namespace {

// Small, so that the fuzzer reaches it.
constexpr size_t kLimit = 1500;

struct Reading {
  explicit Reading(bool the_agent) : agent(the_agent) {}

  // What it has read, each message as it would be sent on.
  std::vector<std::string> messages;
  std::string why;  // why it reads no more
  const bool agent;
  FrameReader reader{kLimit};

  void feed(std::string_view bytes) {
    if (!why.empty()) return;
    reader.feed(bytes);
    Frame frame;
    FrameReader::Answer answer;
    while (why.empty() && (answer = reader.next(&frame)) == FrameReader::Answer::kFrame)
      take(frame);
    if (why.empty() && answer == FrameReader::Answer::kMalformed) why = reader.why();
    if (why.empty()) MUST(reader.held() < kLimit + 4);
  }

  void take(const Frame& frame) {
    if (agent) {
      take(decode_host_message(frame));
    } else {
      take(decode_agent_message(frame));
    }
  }

  template <typename Message>
  void take(Result<Message> message) {
    if (message) {
      messages.push_back(encode(std::move(*message)));
    } else {
      MUST(!message.error().message.empty());
      why = message.error().message;
    }
  }
};

void compare_whole_with_pieces(bool agent, std::string_view bytes) {
  Reading whole(agent), pieces(agent);
  whole.feed(bytes);
  size_t step = 0;
  for (size_t at = 0; at < bytes.size(); at += step) {
    step = 1 + (static_cast<uint8_t>(bytes[at]) + at) % 7;
    pieces.feed(bytes.substr(at, step));
  }
  MUST(whole.messages == pieces.messages);
  MUST(whole.why == pieces.why);

  for (const std::string& sent : whole.messages) {
    MUST(sent.size() <= kMaxFrame + 4);
    const Frame frame{static_cast<uint8_t>(sent[4]), std::string_view(sent).substr(5)};
    Reading again(agent);
    again.take(frame);
    MUST(again.messages.size() == 1 && again.messages[0] == sent);
  }
}

// Whatever an agent reports, it is about its own ranks.
void check_gate(std::string_view bytes) {
  NodeFacts facts;
  facts.host = "b";
  facts.workers = 3;
  EventGate gate(facts, 4);
  Assignment assignment;
  assignment.attempt = 1;
  assignment.first_rank = 5;
  gate.assigned(assignment);
  FrameReader reader(kLimit);
  reader.feed(bytes);
  Frame frame;
  while (reader.next(&frame) == FrameReader::Answer::kFrame) {
    Result<AgentMessage> message = decode_agent_message(frame);
    if (!message) return;
    auto* events = std::get_if<message::Events>(&*message);
    if (!events) continue;
    for (const EventBody& body : gate.pass(std::move(*events))) {
      std::visit(
          [](const auto& event) {
            if constexpr (requires { event.rank; }) {
              MUST(event.attempt == 1 && event.rank >= 5 && event.rank < 8);
            }
          },
          body);
    }
  }
}

}  // namespace

}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  muster::compare_whole_with_pieces(data[0] % 2 == 1, rest);
  muster::check_gate(rest);
  return 0;
}
