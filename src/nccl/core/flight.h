// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "nccl/core/backend.h"
#include "nccl/core/work_state.h"
#include "nccl/report/page_writer.h"

namespace muster::comm::detail {

// How long an operation may take: until when, and what the caller asked for, which errors name.
struct Limit {
  Deadline deadline{};
  Duration timeout{};
};

// Operations that were begun together and that nobody waits for in the call itself: queued for the
// communicator's background thread (no Pending), or begun with CommBackend::start() (a Pending).
// The communicator holds it until it has ended, and it the communicator.
class Flight final : public WorkState {
 public:
  Flight(std::shared_ptr<CommunicatorImpl> owner, std::vector<Operation> operations,
         std::vector<PageBlock::Slot> slots, Limit limit);

  Result<void> wait() override;
  Result<void> wait(Duration limit) override;
  bool test() override;

  std::span<const Operation> operations() const { return operations_; }
  std::span<const PageBlock::Slot> slots() const { return slots_; }
  const Limit& limit() const { return limit_; }
  // Null when it has ended.
  std::shared_ptr<CommunicatorImpl> owner() const;

  // Before anybody else knows of it.
  void set_pending(std::shared_ptr<Pending> pending) { pending_ = std::move(pending); }
  // The background thread has come to it: from now on the backend keeps the deadline.
  void set_running() { running_.store(true); }

  // Asks the Pending and the clock, unless another thread is doing so, and does not wait. Whether
  // it has ended.
  bool poll();
  bool ended() const { return ended_.load(); }

  // True once: who gets it ends the flight, with settle().
  bool claim() { return !claimed_.exchange(true); }
  void settle(Result<void> result);

 private:
  std::optional<Result<void>> outcome() const;
  // Until then at the most; nullopt: not ended by then.
  std::optional<Result<void>> await(Deadline until);
  std::optional<Result<void>> await_pending(Deadline until);
  void expire();
  Error late();

  std::shared_ptr<CommunicatorImpl> owner_;
  const std::vector<Operation> operations_;
  const std::vector<PageBlock::Slot> slots_;
  const Limit limit_;
  std::shared_ptr<Pending> pending_;
  std::mutex pending_mutex_;  // held by the one who asks pending_
  std::atomic<bool> running_{false};
  std::atomic<bool> claimed_{false};
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<void>> result_;
};

}  // namespace muster::comm::detail
