// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "nccl/core/backend.h"
#include "nccl/gloo/session.h"

namespace muster::comm::detail {

// A communicator in Gloo: host memory over TCP, a connection between each two ranks.
class GlooBackend final : public CommBackend {
 public:
  static Result<std::unique_ptr<CommBackend>> make(const BackendPlan& plan);
  ~GlooBackend() override;

  bool stream_ordered() const override { return false; }
  Result<void> run(std::span<const Operation> operations, Deadline deadline) override;
  // Sends and receives alone, also while run() goes on in another thread.
  Result<std::shared_ptr<Pending>> start(std::span<const Operation> operations,
                                         Deadline deadline) override;
  void stop() override { session_->stop(); }
  Result<void> abort(Deadline deadline) override;
  Result<void> close(Deadline deadline) override;
  Result<void> status() override;

  // Gloo makes no communicators out of others.
  Made split(int, int, const BackendPlan&) override { return std::nullopt; }
  Made shrink(std::span<const int>, const BackendPlan&) override { return std::nullopt; }
  Made grow(int, const BackendPlan&) override { return std::nullopt; }

  // There is nothing that host memory would need.
  Result<std::shared_ptr<void>> register_buffer(const Buffer& /*buffer*/) override {
    return std::shared_ptr<void>();
  }
  InitTimings timings() const override { return timings_; }

 private:
  GlooBackend(std::shared_ptr<Mesh> mesh, InitTimings timings)
      : session_(std::make_shared<Session>(std::move(mesh))), timings_(timings) {}

  const std::shared_ptr<Session> session_;
  const InitTimings timings_;
};

}  // namespace muster::comm::detail
