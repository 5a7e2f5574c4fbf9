// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/legacy.h"
#include "store/replies.h"
#include "store/table.h"
#include "store/waits.h"
#include "store/wire.h"

namespace muster {

// How the store speaks to a connection other than the one whose request is being handled. Never
// calls back.
class Outbox {
 public:
  virtual void send(ClientId client, std::string_view bytes) = 0;

 protected:
  ~Outbox() = default;
};

// What all sessions of a store share. Owned by the server, which outlives its sessions.
struct StoreState {
  explicit StoreState(Outbox& out) : outbox(out) {}

  Table table;
  Waits waits;
  Watches watches;
  Outbox& outbox;
  WireLimits wire_limits;
  uint64_t requests = 0;

  // Empties everything but the count of requests.
  void clear();
};

// The store's side of one connection: turns received bytes, in pieces of any size, into changes of
// the state and replies. Knows no socket. A request is applied only when all of it has come.
class Session {
 public:
  Session(StoreState& state, ClientId id) : state_(state), id_(id), decoder_(state.wire_limits) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Takes the next bytes of the peer; false means that the connection has to be closed, why() says
  // why. When `replies` are full the rest is kept: stalled() is true, and feed({}) goes on.
  bool feed(std::string_view bytes, Replies& replies);

  bool stalled() const { return stalled_; }
  const std::string& why() const { return why_; }

  // The peer has sent part of a request.
  bool mid_request() const { return !pending_.empty(); }
  bool greeted() const { return phase_ == Phase::kOpen; }
  bool legacy() const { return dialect_ == Dialect::kLegacy; }
  // The process id that the client gave in its PING, 0 if none came.
  uint32_t client_pid() const { return client_pid_; }

 private:
  enum class Phase : uint8_t { kGreeting, kOpen };

  bool consume(std::string_view bytes, Replies& replies, size_t* used);
  bool greet(std::string_view bytes, size_t* used);
  bool execute(const Request& request, Replies& replies);
  bool set(std::string_view key, std::string_view value, Replies& replies);
  bool multi_set(const Request& request, Replies& replies);
  bool append(const Request& request, Replies& replies);
  bool add(const Request& request, Replies& replies);
  bool compare_set(const Request& request, Replies& replies);
  bool multi_get(const Request& request, Replies& replies);
  bool erase(const Request& request, Replies& replies);
  bool barrier(const Request& request, Replies& replies);
  bool queue_push(const Request& request, Replies& replies);
  bool queue_pop(const Request& request, Replies& replies);
  bool watch(const Request& request, Replies& replies);
  void wait(const Request& request, Replies& replies);
  bool list_keys(Replies& replies);
  bool all_exist(const Request& request) const;
  void wake(std::string_view key, Replies& replies);
  void send_stop(const std::vector<ClientId>& woken, Replies& replies);
  bool refuse(std::string why);

  class Change;

  StoreState& state_;
  const ClientId id_;
  RequestDecoder decoder_;
  Phase phase_ = Phase::kGreeting;
  Dialect dialect_ = Dialect::kCurrent;
  bool stalled_ = false;
  uint32_t client_pid_ = 0;
  std::string pending_;  // the beginning of what could not be handled yet
  std::string why_;
};

}  // namespace muster
