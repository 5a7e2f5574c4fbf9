// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "nccl/core/backend.h"
#include "nccl/core/communicator_impl.h"

namespace muster::comm::detail {

// What a test's backend does, and what was asked of it: how Communicator treats its backend is
// tested without a network or a device. Shared by the test and the backend. Any thread.
class Script {
 public:
  bool device = false;  // stream_ordered()

  // run() gives these, one after the other; then success.
  void answer(Result<void> result) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(result));
  }
  // run() and Pendings stay until release(), the deadline or stop(). `deaf`: until release() alone.
  void hold(bool deaf = false) {
    const std::lock_guard lock(mutex_);
    held_ = true;
    deaf_ = deaf;
  }
  // Those of operations of this kind stay until release() too.
  void hold_kind(OpKind kind) {
    const std::lock_guard lock(mutex_);
    held_kind_ = kind;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    held_kind_.reset();
    changed_.notify_all();
  }
  // Waits until a Pending of operations of this kind has been given up: who had it saw its end.
  bool wait_for_end(OpKind kind) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return ended_.contains(kind); });
  }
  // "run all_reduce", "start send recv", "stop", "abort", "close", ...
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  size_t count(const std::string& call) const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::count(calls_.begin(), calls_.end(), call));
  }
  bool wait_for(const std::string& call) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return std::find(calls_.begin(), calls_.end(), call) != calls_.end();
    });
  }

  void note(const std::string& call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
    changed_.notify_all();
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    calls_.emplace_back("stop");
    changed_.notify_all();
  }
  Result<void> run(Deadline deadline) {
    std::unique_lock lock(mutex_);
    const auto free = [this] { return !held_ || (stopped_ && !deaf_); };
    if (deaf_)
      changed_.wait(lock, free);
    else if (!changed_.wait_until(lock, deadline, free))
      return Error{ErrorCode::kTimeout, "rank 1 has sent nothing", {1}};
    if (stopped_) return Error{ErrorCode::kAborted, "stopped"};
    if (answers_.empty()) return {};
    Result<void> result = std::move(answers_.front());
    answers_.pop_front();
    return result;
  }
  void note_end(OpKind kind) {
    const std::lock_guard lock(mutex_);
    ended_.insert(kind);
    changed_.notify_all();
  }
  std::optional<Result<void>> poll(OpKind kind) {
    const std::lock_guard lock(mutex_);
    if ((held_ || held_kind_ == kind) && (deaf_ || !stopped_)) return std::nullopt;
    if (stopped_) return Result<void>(Error{ErrorCode::kAborted, "stopped"});
    if (answers_.empty()) return Result<void>();
    Result<void> result = std::move(answers_.front());
    answers_.pop_front();
    return result;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> calls_;
  std::deque<Result<void>> answers_;
  std::set<OpKind> ended_;
  std::optional<OpKind> held_kind_;
  bool held_ = false;
  bool deaf_ = false;
  bool stopped_ = false;
};

class FakePending final : public Pending {
 public:
  FakePending(std::shared_ptr<Script> script, OpKind kind)
      : script_(std::move(script)), kind_(kind) {}
  ~FakePending() override { script_->note_end(kind_); }
  FakePending(const FakePending&) = delete;
  FakePending& operator=(const FakePending&) = delete;
  std::optional<Result<void>> poll() override { return script_->poll(kind_); }

 private:
  std::shared_ptr<Script> script_;
  const OpKind kind_;
};

class FakeBackend final : public CommBackend {
 public:
  explicit FakeBackend(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  bool stream_ordered() const override { return script_->device; }
  Result<void> run(std::span<const Operation> operations, Deadline deadline) override {
    script_->note("run" + kinds(operations));
    return script_->run(deadline);
  }
  Result<std::shared_ptr<Pending>> start(std::span<const Operation> operations, Deadline) override {
    script_->note("start" + kinds(operations));
    return std::shared_ptr<Pending>(
        std::make_shared<FakePending>(script_, operations.front().kind));
  }
  void stop() override { script_->stop(); }
  Result<void> abort(Deadline) override { return script_->note("abort"), Result<void>(); }
  Result<void> close(Deadline) override { return script_->note("close"), Result<void>(); }
  Result<void> status() override { return {}; }
  Made split(int, int, const BackendPlan&) override { return std::nullopt; }
  Made shrink(std::span<const int>, const BackendPlan&) override { return std::nullopt; }
  Made grow(int, const BackendPlan&) override { return std::nullopt; }
  Result<std::shared_ptr<void>> register_buffer(const Buffer&) override {
    return std::shared_ptr<void>();
  }
  InitTimings timings() const override { return {}; }

 private:
  static std::string kinds(std::span<const Operation> operations) {
    std::string text;
    for (const Operation& operation : operations)
      text += std::string(" ") + to_string(operation.kind);
    return text;
  }
  std::shared_ptr<Script> script_;
};

// Rank 0 of a communicator "world" of three, which are ranks 4, 5 and 6 of the world.
inline Communicator fake_communicator(const std::shared_ptr<Script>& script,
                                      CommunicatorOptions options = {},
                                      Backend kind = Backend::kGloo,
                                      std::shared_ptr<muster::Store> store = nullptr) {
  CommunicatorImpl::Parts parts;
  parts.kind = kind;
  parts.plan.size = 3;
  parts.plan.world_ranks = {4, 5, 6};
  parts.plan.name = "world";
  parts.plan.options = std::move(options);
  parts.plan.store = std::move(store);
  parts.backend = std::make_unique<FakeBackend>(script);
  return Communicator(std::make_shared<CommunicatorImpl>(std::move(parts)));
}

}  // namespace muster::comm::detail
