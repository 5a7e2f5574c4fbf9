// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/gloo_backend.h"

#include <gloo/config.h>

#include "nccl/gloo/collectives.h"
#include "nccl/gloo/messages.h"

namespace muster::comm::detail {
namespace {

// Sends and receives that start() began.
class GlooPending final : public Pending {
 public:
  GlooPending(std::shared_ptr<Session> session, std::shared_ptr<Mesh> mesh,
              std::unique_ptr<Messages> messages)
      : session_(std::move(session)), mesh_(std::move(mesh)), messages_(std::move(messages)) {}

  // If they are still under way, Gloo's thread needs the buffers to go on.
  ~GlooPending() override {
    if (messages_) mesh_->keep(std::shared_ptr<void>(std::move(messages_)));
  }
  GlooPending(const GlooPending&) = delete;
  GlooPending& operator=(const GlooPending&) = delete;

  std::optional<Result<void>> poll() override { return wait(std::chrono::steady_clock::now()); }

  std::optional<Result<void>> wait(Deadline deadline) override {
    if (!messages_) return result_;
    bool finished = false;
    result_ = session_->use([&](const auto& /*mesh*/) { finished = messages_->finish(deadline); });
    if (result_ && !finished) return std::nullopt;
    messages_.reset();
    mesh_.reset();
    return result_;
  }

 private:
  const std::shared_ptr<Session> session_;
  std::shared_ptr<Mesh> mesh_;
  std::unique_ptr<Messages> messages_;  // null: ended
  Result<void> result_;
};

// One that is done already.
class Ended final : public Pending {
 public:
  std::optional<Result<void>> poll() override { return Result<void>(); }
};

}  // namespace

Result<std::unique_ptr<CommBackend>> GlooBackend::make(const BackendPlan& plan) {
  InitTimings timings;
  std::shared_ptr<Mesh> mesh;
  if (plan.size > 1) {
    auto connected = Mesh::connect(plan, timings);
    if (!connected) return connected.error();
    mesh = std::move(*connected);
  }
  return std::unique_ptr<CommBackend>(new GlooBackend(std::move(mesh), timings));
}

GlooBackend::~GlooBackend() {
  session_->end(std::chrono::steady_clock::now(), "closed here");
}

Result<void> GlooBackend::run(std::span<const Operation> operations, Deadline deadline) {
  return session_->use([&](const std::shared_ptr<Mesh>& mesh) {
    if (!mesh) {
      for (const Operation& operation : operations)
        perform_alone(operation);
      return;
    }
    Messages messages(*mesh, deadline);
    messages.begin(operations);
    for (const Operation& operation : operations)
      perform(*mesh, operation, deadline);
    messages.finish(deadline);
  });
}

Result<std::shared_ptr<Pending>> GlooBackend::start(std::span<const Operation> operations,
                                                    Deadline deadline) {
  std::shared_ptr<Mesh> used;
  std::unique_ptr<Messages> messages;
  const auto begun = session_->use([&](const std::shared_ptr<Mesh>& mesh) {
    if (!mesh) return;
    used = mesh;
    messages = std::make_unique<Messages>(*mesh, deadline);
    messages->begin(operations);
  });
  if (!begun) return begun.error();
  if (!messages) return std::shared_ptr<Pending>(std::make_shared<Ended>());
  return std::shared_ptr<Pending>(
      std::make_shared<GlooPending>(session_, std::move(used), std::move(messages)));
}

Result<void> GlooBackend::abort(Deadline deadline) {
  session_->stop();
  if (session_->end(deadline, "aborted here")) return {};
  return Error{ErrorCode::kTimeout, "an operation has not left the library yet"};
}

Result<void> GlooBackend::close(Deadline deadline) {
  if (session_->end(deadline, "closed here")) return {};
  return Error{ErrorCode::kTimeout, "an operation has not left the library yet"};
}

Result<void> GlooBackend::status() {
  if (auto failure = session_->failure()) return std::move(*failure);
  return {};
}

Result<std::unique_ptr<CommBackend>> make_gloo_backend(const BackendPlan& plan) {
  return GlooBackend::make(plan);
}

std::vector<std::pair<std::string, std::string>> gloo_must_agree() {
  return {{"gloo version", std::to_string(GLOO_VERSION_MAJOR) + "." +
                               std::to_string(GLOO_VERSION_MINOR) + "." +
                               std::to_string(GLOO_VERSION_PATCH)},
          // How messages are told apart, and which algorithm does what.
          {"muster's use of gloo", "1"}};
}

}  // namespace muster::comm::detail
