// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nccl/core/operation.h"
#include "store/store.h"

namespace muster::comm::detail {

// An operation, or a group of them, that a stream-ordered backend has begun. Any thread.
class Pending {
 public:
  virtual ~Pending() = default;
  // nullopt: still going on. Also finds what went wrong behind the scenes (NCCL's async errors).
  virtual std::optional<Result<void>> poll() = 0;
  // As poll(), but waits for the end, until the deadline at most. Never called while another thread
  // is in poll() or wait(). This one polls, ever more seldom: for work of a device, whose end is no
  // event that a host could wait for with a deadline.
  virtual std::optional<Result<void>> wait(Deadline deadline);
  // What to say when its time is over: kTimeout, with who is missing where that is known.
  virtual Error late() const { return Error{ErrorCode::kTimeout, ""}; }
};

// What a backend is made from. The store is under a prefix that is this communicator's and this
// attempt's alone; the backend may use it as long as it lives (one caller at a time), but what is
// not there waits only as long as the call says once the making is over.
struct BackendPlan {
  int rank = 0;  // of the communicator
  int size = 1;
  std::vector<int> world_ranks{};  // by rank
  std::string name{};
  std::shared_ptr<muster::Store> store{};
  std::string local_address{};  // this host's address as the other ranks can reach it
  int local_rank = 0;
  CommunicatorOptions options{};
  // More than 0: ranks below it are in a communicator already, which they let grow() (or, where the
  // library has no such thing, all call make_...()); this one is among those who join them.
  int grown_from = 0;
  Deadline deadline{};
};

// One communicator's work in one library. Owned by CommunicatorImpl, which orders the calls: one at
// a time, except abort(), revoke() and status(), which come from any thread at any time.
// Each Error names what the library said; CommunicatorImpl adds the operation, the communicator and
// makes the ranks in it, which are the communicator's, the world's.
class CommBackend {
 public:
  virtual ~CommBackend() = default;

  // Whether the memory it works on is the device's and operations are begun with start(); otherwise
  // host memory and run().
  virtual bool stream_ordered() const = 0;

  // Does them all, as one group (sends and receives cannot wait for each other in a circle), and
  // returns when they are done, at the deadline at the latest.
  virtual Result<void> run(std::span<const Operation> operations, Deadline deadline) = 0;

  // Begins them all as one group. Host memory: sends and receives alone, which may overtake what
  // run() does in another thread at the same time.
  virtual Result<std::shared_ptr<Pending>> start(std::span<const Operation> operations,
                                                 Deadline deadline) = 0;

  // Stops what is under way: run() and poll() say kAborted soon. Must not wait.
  virtual void stop() = 0;
  // Stops it so that the streams run on where the library can do that (NCCL's revoke). Must not
  // wait.
  virtual Result<void> revoke() {
    stop();
    return {};
  }
  // Frees everything after stop(), by the deadline, or says that it could not.
  virtual Result<void> abort(Deadline deadline) = 0;
  // Waits for what is under way and frees everything.
  virtual Result<void> close(Deadline deadline) = 0;
  virtual Result<void> status() = 0;

  // The library's own way to make a communicator out of this one; nullopt: it has none (or this
  // version has none), and a new one is made through the store. `plan` describes the new one.
  using Made = std::optional<Result<std::unique_ptr<CommBackend>>>;
  // Called by all members; nullptr as the value for kNoColor.
  virtual Made split(int color, int key, const BackendPlan& plan) = 0;
  // Called by all who stay, also after an abort: the library may need that all say whether it can.
  virtual Made shrink(std::span<const int> excluded, const BackendPlan& plan) = 0;
  virtual Made grow(int joining, const BackendPlan& plan) = 0;

  virtual Result<std::shared_ptr<void>> register_buffer(const Buffer& buffer) = 0;
  virtual InitTimings timings() const = 0;
};

// A new one, through the plan's store; kUnavailable, with the reason, where this build has it not.
Result<std::unique_ptr<CommBackend>> make_gloo_backend(const BackendPlan& plan);
Result<std::unique_ptr<CommBackend>> make_nccl_backend(const BackendPlan& plan);

// What of this process must agree with the others' before communicators of this backend are made:
// {"nccl version", "2.28.9"}, {"NCCL_PROTO", "LL"}, ... Known without a device.
std::vector<std::pair<std::string, std::string>> gloo_must_agree();
std::vector<std::pair<std::string, std::string>> nccl_must_agree();
// What identifies the device it would use, "" for none; two ranks with the same one are an error.
std::string nccl_device_identity(int device);

}  // namespace muster::comm::detail
