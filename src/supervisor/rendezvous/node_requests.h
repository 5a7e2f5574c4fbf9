// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/rendezvous/messages.h"
#include "supervisor/rendezvous/remote_request.h"
#include "supervisor/rendezvous/request_desk.h"

namespace muster {

// Most requests that may be open at all agents together.
inline constexpr size_t kMaxForwardedRequests = 256;
// How long an agent may take to begin its answer.
inline constexpr Milliseconds kHeadPatience{30'000};
// Parts of attempts that are remembered; of more, the oldest attempts' are forgotten.
inline constexpr size_t kMaxPlaces = 100'000;

// The coordinator's end of the requests to other nodes: which node is where, which requests are
// open, and what the agents answer. An id is never used again. Owned by RemoteAgents.
class NodeRequests {
 public:
  using Send = std::function<void(const std::string& agent, HostMessage message)>;

  NodeRequests(Loop& loop, Send send, Milliseconds head_patience = kHeadPatience);
  ~NodeRequests();

  // An agent was given that part of an attempt.
  void placed(int attempt, int node, const std::string& agent);
  // Who had it (attempt -1: the latest), "" if nobody known here.
  std::string agent_at(int attempt, int node) const;

  // The error's code is what to tell a client (503: too many are open). `agent` is connected.
  Result<std::unique_ptr<RemoteRequest>> start(const std::string& agent, RemoteQuestion question,
                                               RemoteRequest::Callbacks callbacks);

  // What an agent says, from the loop. The text says what no agent does, nullptr if all is well.
  const char* take(const std::string& agent, const message::Answer& answer);
  const char* take(const std::string& agent, const message::Piece& piece);
  const char* take(const std::string& agent, const message::AnswerEnd& end);
  const char* take(const std::string& agent, const message::AnswerBroken& broken);

  // Its connection is gone, and with it every answer that was not whole.
  void gone(const std::string& agent);

  size_t open() const;

 private:
  struct Impl;
  class Handle;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster
