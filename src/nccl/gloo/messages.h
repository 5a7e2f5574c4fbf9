// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nccl/gloo/mesh.h"

namespace muster::comm::detail {

// Sends and receives that are under way together. The mesh must outlive it.
class Messages {
 public:
  Messages(Mesh& mesh, Deadline deadline) : mesh_(mesh), deadline_(deadline) {}

  // Begins those of the operations that are sends and receives. Throws GlooFailure.
  void begin(std::span<const Operation> operations);

  // Waits for all, until `until` at most: false then. Throws GlooFailure.
  bool finish(Deadline until);

 private:
  void begin_one(const Operation& operation);

  Mesh& mesh_;
  const Deadline deadline_;
  std::vector<std::unique_ptr<WatchedBuffer>> buffers_;
};

}  // namespace muster::comm::detail
