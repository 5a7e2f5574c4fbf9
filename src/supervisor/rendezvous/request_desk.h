// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "loop/http_exchange.h"
#include "loop/loop.h"
#include "supervisor/rendezvous/messages.h"

namespace muster {

// Most requests that may be open at one agent.
inline constexpr size_t kMaxOpenRequests = 32;
// Most bytes that a handler may have written of one answer and that cannot go yet; whoever writes
// without waiting for on_drained loses its answer.
inline constexpr size_t kMaxHeldAnswer = size_t{16} << 20;

// An agent's desk for requests that the coordinator's node passes on: each becomes an HttpExchange
// for this node's own HTTP handler. What that writes waits here until there is credit for it and
// the connection has little left to send, so that no heartbeat ever waits behind a long log. All
// answers get their turn. Owned by RemoteLink.
class RequestDesk {
 public:
  // The connection to the coordinator, while there is one.
  struct Wire {
    std::function<void(AgentMessage)> send;
    std::function<size_t()> unsent;
  };
  using Handler = std::function<void(std::unique_ptr<HttpExchange>)>;

  // Without a handler every request is broken off at once.
  RequestDesk(Loop& loop, Wire wire, Handler handler);
  ~RequestDesk();

  // From the loop. The text says what no coordinator does, nullptr if all is well.
  const char* take(message::Request request);
  const char* take(const message::Credit& credit);
  void take(const message::Cancel& cancel);

  // The connection has sent what it had.
  void go_on();

  // The connection is gone: nobody waits for any answer. Ids start anew.
  void hang_up();

  size_t open() const;

 private:
  struct Impl;
  class Exchange;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster
