// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "loop/socket_address.h"
#include "loop/unique_fd.h"
#include "store/waits.h"

namespace muster {

// A connection that waits for keys.
struct StoreWaiter {
  std::string peer;  // "127.0.0.1:41234"
  uint32_t pid = 0;  // the client's process id as it gave it itself; 0: a 1.13 client
  Clock::time_point since;
  bool barrier = false;
  std::vector<std::string> keys;  // still missing, as on the wire ("/default_pg/0//cpu//0/3")
};

struct StoreCounters {
  size_t connections = 0;  // open now
  uint64_t accepted = 0;   // since the start
  uint64_t requests = 0;   // since the start
  int64_t keys = 0;        // values stored now
  uint64_t bytes = 0;      // of keys, values and queues
  size_t waiters = 0;      // connections that wait
  uint64_t bad_peers = 0;  // connections closed for what they sent, since the start
};

// The key-value store that the workers meet at: PyTorch's TCPStore protocol, current and 1.13, on
// the supervisor's loop. Owned by the job, lives for the whole run. A bad peer costs its own
// connection and one line, at most a few lines a minute for all of them.
class StoreServer {
 public:
  // A connection that began with kControlPreamble: its socket, all bytes that came so far and where
  // it comes from. The server has nothing more to do with it. Must not destroy the server. Without
  // a function such a peer is a bad one.
  using OnStranger =
      std::function<void(UniqueFd socket, std::string bytes, const SocketAddress& peer)>;
  // Whether a client of the store may be served, asked once for each, when its first bytes show
  // that it is one. Without a function all may.
  using Allow = std::function<bool(const SocketAddress& peer)>;

  struct Callbacks {
    // A line for people, from the loop. Must not destroy or reset the server.
    std::function<void(const std::string& message)> on_trouble;
    OnStranger on_stranger{};
    Allow allow{};
  };
  struct Limits {
    // Unsent replies at which a connection's further requests have to wait.
    size_t pause_at = size_t{1} << 20;
    // Unsent replies at which a connection is closed. Only a single reply larger than this, or the
    // notices for a key watcher that does not read, get that far.
    size_t max_unsent = size_t{1} << 30;
    // How long after a reset a connection from before it may stay that has not sent anything yet.
    Milliseconds old_patience{10'000};
  };

  // `address` is a literal; "::" means every address of both families, also on a machine without
  // IPv6. Port 0 takes a free port. The error's code tells EADDRINUSE (somebody listens there) from
  // EADDRNOTAVAIL (not an address of this machine).
  static Result<std::unique_ptr<StoreServer>> listen(Loop& loop, const std::string& address,
                                                     int port, Callbacks callbacks, Limits limits);
  static Result<std::unique_ptr<StoreServer>> listen(Loop& loop, const std::string& address,
                                                     int port, Callbacks callbacks);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const;

  // For an owner that is built after the server. Agents that come between hold_strangers() and
  // set_on_stranger() wait for it.
  void hold_strangers();
  void set_on_stranger(OnStranger on_stranger);
  void set_allow(Allow allow);

  // A new attempt: empties the store and closes the connections of its clients, those not yet
  // accepted too. The port stays, and so does who has not said yet what it came for: it may still
  // turn out to be a stranger, but nothing that came before the reset is served any more. Call it
  // when the old workers are dead and the new ones not yet started.
  void reset();

  // Sets a key as a client's SET does, waking those that wait for it. On the wire users' keys begin
  // with "/". False if the store is full.
  bool set(std::string_view key, std::string_view value);

  // What a client's GET of that key would bring now; nothing if it would wait.
  std::optional<std::string> find(std::string_view key) const;

  std::vector<StoreWaiter> waiters() const;
  StoreCounters counters() const;

  // The key (as on the wire) that a client with this pid on this machine was waiting for when its
  // connection ended, or had given up just before; "" if there was none since the last reset. Of
  // very many such clients the first are known.
  std::string left_waiting(uint32_t pid) const;

 private:
  struct Impl;
  explicit StoreServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
