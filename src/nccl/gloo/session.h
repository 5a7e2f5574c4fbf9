// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "nccl/gloo/mesh.h"

namespace muster::comm::detail {

// The connections of a communicator and the first thing that went wrong with them, after which they
// are closed and everything says the same. Shared by the backend and what is under way; any thread.
class Session {
 public:
  // No mesh: a communicator of one rank.
  explicit Session(std::shared_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}

  // Calls `body` with the connections, a shared_ptr that is null for one rank. What it throws is
  // the session's end.
  template <typename Body>
  Result<void> use(Body body) {
    std::shared_ptr<Mesh> mesh;
    if (auto failure = enter(mesh)) return std::move(*failure);
    std::optional<Error> failure;
    try {
      body(mesh);
    } catch (GlooFailure& caught) {
      failure = fail(std::move(caught.error));
    } catch (const std::exception& caught) {
      // What Gloo finds wrong with a call: a mistake of ours, or no memory.
      failure = fail({ErrorCode::kSystem, gloo_words(caught)});
    }
    mesh.reset();
    leave();
    if (failure) return std::move(*failure);
    return {};
  }

  void stop();
  // Closes and waits until nobody uses the connections, until the deadline at most: false then.
  bool end(Deadline deadline, const char* why);
  std::optional<Error> failure() const;

 private:
  std::optional<Error> enter(std::shared_ptr<Mesh>& mesh);
  Error fail(Error error);
  void leave();

  mutable std::mutex mutex_;
  std::condition_variable left_;
  int users_ = 0;
  std::optional<Error> failure_;
  std::shared_ptr<Mesh> mesh_;  // null after a failure too
};

}  // namespace muster::comm::detail
