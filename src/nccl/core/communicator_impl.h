// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "nccl/core/arguments.h"
#include "nccl/core/background.h"
#include "nccl/core/checker.h"
#include "nccl/core/flight.h"
#include "nccl/core/health.h"
#include "nccl/core/making.h"
#include "nccl/core/watcher.h"
#include "nccl/report/page_writer.h"

namespace muster::comm::detail {

// A communicator: numbers each operation, writes it into the worker's page, keeps its deadline, and
// hands it to the backend: host memory in the caller's thread, or in the background one where the
// call is asynchronous or others wait there; device memory with start(). Owned by Communicator and
// by what is in flight.
//
// "Users" are the threads inside the backend and the flights; free() and close() wait for them.
class CommunicatorImpl : public std::enable_shared_from_this<CommunicatorImpl> {
 public:
  struct Parts {
    WorldContext world{};
    Backend kind = Backend::kGloo;
    uint64_t id = 0;
    std::string prefix{};  // of its keys
    BackendPlan plan{};
    std::unique_ptr<CommBackend> backend{};
    InitTimings timings{};
    // Checked mode: two connections to the store, for Checker. Otherwise null.
    std::shared_ptr<muster::Store> check_collectives{};
    std::shared_ptr<muster::Store> check_messages{};
  };
  explicit CommunicatorImpl(Parts parts);

  const Parts& parts() const { return parts_; }
  const BackendPlan& plan() const { return parts_.plan; }
  CommBackend& backend() { return *parts_.backend; }
  Caller caller() const { return {parts_.plan.rank, parts_.plan.size, parts_.kind}; }
  // What is wrong with using it now; `call` begins the message.
  std::optional<Error> refusal(const std::string& call) const;
  // Numbers the collective calls that go through the store alone (split): the same on all members.
  uint64_t next_meeting() { return ++meetings_; }

  // Checks the arguments, then submits; a group that is open in this thread collects it.
  Work call(Operation operation, const OpOptions& options);
  Work call_together(std::vector<Operation> operations, const OpOptions& options);
  // A call that is wrong before it is an operation.
  Work refuse(Error error) const;
  // Checked operations that begin together.
  Work submit(std::vector<Operation> operations, const OpOptions& options);

  // Ends a flight, once, whoever sees it end.
  void complete(Flight& flight, Result<void> result);
  void perform(Flight& flight);  // in the background thread
  bool poll_flights();           // in the watcher's thread: whether any is left
  // For who must not wait, of a flight whose time is over: whether the others have had their moment
  // to say where they are, which begins with the first call. The flight ends after it.
  bool heard_others(const Flight& flight);

  // The steps of an abort: nothing new begins; what is under way stops; what there is is freed.
  void mark(const std::string& reason);
  void stop();
  Result<void> revoke();
  Result<void> free(Deadline deadline);
  Result<void> close();
  bool finished();  // closed, or freed after an abort
  Result<void> status();

 private:
  Limit limit(const OpOptions& options) const;
  std::optional<Error> check(Operation& operation, const OpOptions& options) const;
  Work run_here(std::span<const Operation> operations, std::span<PageBlock::Slot> slots,
                const Limit& limit);
  Work run_in_background(std::vector<Operation> operations, const OpOptions& options);
  Work start(std::vector<Operation> operations, const Limit& limit);
  Result<void> run(std::span<const Operation> operations, std::span<const PageBlock::Slot> slots,
                   Deadline deadline);
  Result<std::shared_ptr<Pending>> begin(const Flight& flight);
  // Checked mode: whether the other members are about to do the same.
  Result<void> compare(std::span<const Operation> operations,
                       std::span<const PageBlock::Slot> slots, Deadline deadline);

  std::vector<PageBlock::Slot> enter(std::span<const Operation> operations);
  // Ends the ring's entries; an error gets its text, and ends the communicator if it has to.
  Result<void> leave(std::span<const Operation> operations, std::span<const PageBlock::Slot> slots,
                     const Limit& limit, Result<void> result);
  std::string operation_name(const Operation& operation, const PageBlock::Slot& slot) const;
  // A timeout gets what the others say in the store; they get what this rank was in.
  void tell_others(const std::string& operation, Error& error);
  Deadline listen_until();
  Error explain(const std::string& what, const Limit& limit, Error error);
  std::string what(std::span<const Operation> operations,
                   std::span<const PageBlock::Slot> slots) const;

  bool begin_use();
  void end_use();
  bool wait_unused(Deadline deadline);
  bool wait_for_room(Deadline deadline);
  void notice_end();  // health_ has ended: whoever waits for room or users looks again
  Result<void> free_all(Deadline deadline);
  // nullopt: this thread is to free it, and then to call the second.
  std::optional<Result<void>> begin_freeing(Deadline deadline);
  void end_freeing(const Result<void>& result);

  Parts parts_;
  const Duration operation_timeout_;
  Health health_;
  PageBlock page_;
  const std::shared_ptr<Checker> checker_;  // null: not checked
  Background background_;
  std::shared_ptr<Watcher> watcher_;  // from the first flight with a Pending on
  uint64_t meetings_ = 0;

  std::atomic<int> users_{0};
  std::atomic<bool> closing_{false};
  std::atomic<bool> told_{false};
  std::mutex mutex_;
  std::condition_variable changed_;              // users_, health_ and what is below
  std::deque<std::shared_ptr<Flight>> flights_;  // begun with start(), oldest first
  std::optional<Deadline> listen_until_;         // the others are asked where they are
  size_t next_look_ = 0;  // the watcher's turn among those that are not the oldest
  bool watched_ = false;
  bool freeing_ = false;
  std::optional<Result<void>> freed_;
};

}  // namespace muster::comm::detail
