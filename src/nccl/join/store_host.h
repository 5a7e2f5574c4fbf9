// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>

#include <memory>
#include <string>

#include "loop/socket_address.h"
#include "nccl/core/operation.h"

namespace muster::comm::detail {

// The store inside a worker: rank 0's, where no launcher has one. It serves muster's clients and
// PyTorch's on every address of the host, on one thread of its own. Owned by the meeting point. All
// calls may come from any thread.
class StoreHost {
 public:
  static constexpr size_t kMaxConnections = 16384;

  struct Limits {
    size_t connections = kMaxConnections;  // more wait to be accepted until one has gone
    // Unsent replies at which a connection's further requests have to wait, and at which it is
    // closed: only a larger single reply, or the notices for a watcher that does not read them.
    size_t pause_at = size_t{1} << 20;
    size_t max_unsent = size_t{1} << 30;
  };

  // Port 0 takes a free one.
  static Result<std::unique_ptr<StoreHost>> listen(int port, Limits limits);
  static Result<std::unique_ptr<StoreHost>> listen(int port);
  // Closes all connections. What has been answered still arrives.
  ~StoreHost();
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;

  int port() const;

  // A client of this very process: it does not count as somebody who needs the store.
  void add_own(const SocketAddress& client);

  // Waits until `key` exists or nobody else is connected. False: the deadline came first.
  bool wait_until_over(const std::string& key, Deadline deadline);

 private:
  struct Impl;
  explicit StoreHost(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::comm::detail
