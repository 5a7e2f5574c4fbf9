// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gloo/context.h>
#include <gloo/transport/tcp/device.h>

#include <memory>
#include <mutex>
#include <vector>

#include "nccl/core/backend.h"
#include "nccl/gloo/addresses.h"
#include "nccl/gloo/watched.h"

namespace muster::comm::detail {

class LoopTurns;

// A connection between each two ranks of a communicator, and Gloo's thread that serves them. Shared
// by the backend and by what is under way; whoever drops it last frees it. Works for two ranks or
// more.
class Mesh {
 public:
  // Meets the others through the plan's store and connects, by the plan's deadline. Who is missing
  // is named. SIGPIPE is ignored from then on if nothing was done about it before, because Gloo
  // writes to connections that may be broken.
  static Result<std::shared_ptr<Mesh>> connect(const BackendPlan& plan, InitTimings& timings);
  ~Mesh();

  // What Gloo's collectives take.
  const std::shared_ptr<gloo::Context>& context() const { return context_; }
  WatchedContext& transport() { return *transport_; }
  int rank() const { return context_->rank; }
  int size() const { return context_->size; }

  // Closes the connections, after what was sent; whoever still waits fails. From any thread, any
  // number of times; takes some milliseconds.
  void close();
  // What must live as long as the connections.
  void keep(std::shared_ptr<void> thing);

 private:
  Mesh() = default;
  void make_pairs(const BackendPlan& plan);
  ListenAddresses listening();
  Result<void> meet(const BackendPlan& plan, std::vector<sockaddr_storage>& peers);
  Result<void> wait_for_all(Deadline deadline);
  Result<void> connect_pairs(const BackendPlan& plan, const std::vector<sockaddr_storage>& peers);

  std::unique_ptr<LoopTurns> turns_;  // dies after the device, whose thread calls it
  std::shared_ptr<gloo::transport::tcp::Device> device_;
  std::shared_ptr<gloo::transport::Context> connected_;
  std::shared_ptr<WatchedContext> transport_;
  std::shared_ptr<gloo::Context> context_;
  std::once_flag closed_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace muster::comm::detail
