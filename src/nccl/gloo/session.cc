// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/session.h"

namespace muster::comm::detail {

std::optional<Error> Session::enter(std::shared_ptr<Mesh>& mesh) {
  const std::lock_guard lock(mutex_);
  if (failure_) return failure_;
  mesh = mesh_;
  ++users_;
  return std::nullopt;
}

void Session::leave() {
  const std::lock_guard lock(mutex_);
  if (--users_ == 0) left_.notify_all();
}

// The peers learn of it by the end of their connections, so that none waits until its own deadline.
Error Session::fail(Error error) {
  std::shared_ptr<Mesh> mesh;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    error = *failure_;
    mesh = std::move(mesh_);
  }
  if (mesh) mesh->close();
  return error;
}

void Session::stop() {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = Error{ErrorCode::kAborted, "stopped here"};
  if (mesh_) mesh_->transport().stop();
}

bool Session::end(Deadline deadline, const char* why) {
  fail({ErrorCode::kAborted, why});
  std::unique_lock lock(mutex_);
  return left_.wait_until(lock, deadline, [this] { return users_ == 0; });
}

std::optional<Error> Session::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace muster::comm::detail
