// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
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
  struct Callbacks {
    // A line for people, from the loop. Must not destroy or reset the server.
    std::function<void(const std::string& message)> on_trouble;
  };
  struct Limits {
    // Unsent replies at which a connection's further requests have to wait.
    size_t pause_at = size_t{1} << 20;
    // Unsent replies at which a connection is closed. Only a single reply larger than this, or the
    // notices for a key watcher that does not read, get that far.
    size_t max_unsent = size_t{1} << 30;
  };

  // `address` is a literal; "::" means every address of both families, also on a machine without
  // IPv6. Port 0 takes a free port.
  static Result<std::unique_ptr<StoreServer>> listen(Loop& loop, const std::string& address,
                                                     int port, Callbacks callbacks, Limits limits);
  static Result<std::unique_ptr<StoreServer>> listen(Loop& loop, const std::string& address,
                                                     int port, Callbacks callbacks);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const;

  // A new attempt: closes every connection, those not yet accepted too, and empties the store. The
  // port stays. Call it when the old workers are dead and the new ones not yet started.
  void reset();

  std::vector<StoreWaiter> waiters() const;
  StoreCounters counters() const;

 private:
  struct Impl;
  explicit StoreServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster
