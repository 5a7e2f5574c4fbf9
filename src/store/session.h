// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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

  // Whether a connection may begin with kControlPreamble, which makes its session a stranger's.
  bool strangers = false;
  // Asked once for each connection, when its first bytes show a client of the store: why it may not
  // be served, "" if that need not be said. Without a function all may.
  std::function<std::optional<std::string>(ClientId)> objection;

  // Changes the store as a client's SET does. False if the store is full.
  bool set(std::string_view key, std::string_view value);

  // Empties it of what clients have put there.
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

  // The reason for closing is that the peer came for somebody else: all that it has sent is to be
  // handed over to them.
  bool stranger() const { return stranger_; }
  std::string take_bytes() { return std::move(pending_); }

  // The peer may still turn out to be a stranger.
  bool undecided() const;

  // The peer has sent part of a request.
  bool mid_request() const { return !pending_.empty(); }
  bool greeted() const { return phase_ == Phase::kOpen; }
  bool legacy() const { return dialect_ == Dialect::kLegacy; }
  // The process id that the client gave in its PING, 0 if none came.
  uint32_t client_pid() const { return client_pid_; }
  // What it waits for (Waits::words), or waited for when it gave up and has asked nothing since.
  std::string waited_for() const {
    std::string now = state_.waits.words(id_);
    return now.empty() ? given_up_ : now;
  }

 private:
  enum class Phase : uint8_t { kGreeting, kOpen };

  bool consume(std::string_view bytes, Replies& replies, size_t* used);
  bool greet(std::string_view bytes, size_t* used);
  bool greet_stranger(std::string_view bytes);
  bool refuse_unknown(std::string_view bytes);
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
  friend struct StoreState;

  StoreState& state_;
  const ClientId id_;
  RequestDecoder decoder_;
  Phase phase_ = Phase::kGreeting;
  Dialect dialect_ = Dialect::kCurrent;
  bool stalled_ = false;
  bool stranger_ = false;
  uint32_t client_pid_ = 0;
  std::string given_up_;  // the wait that it cancelled last
  std::string pending_;   // the beginning of what could not be handled yet
  std::string why_;
};

}  // namespace muster
