// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nccl/cuda/bounded.h"
#include "nccl/cuda/tables.h"

namespace muster::comm::detail {

// A ncclComm_t and who may touch it when. NCCL's communicators take calls of one thread at a time
// (asking for the state included: it finishes what went on behind) except ncclCommAbort, which ends
// calls that are stuck; so calls take turns, and an abort waits for its turn only shortly.
//
// Shared by the backend, by operations that are under way and by threads that are stuck in NCCL.
// Its destructor frees nothing: abort() or destroy() do.
class NcclComm : public std::enable_shared_from_this<NcclComm> {
 public:
  NcclComm(const NcclTable& nccl, const CudaTable& cuda, int device, std::string name)
      : nccl_(nccl), cuda_(cuda), device_(device), name_(std::move(name)) {}

  const NcclTable& nccl() const { return nccl_; }
  const CudaTable& cuda() const { return cuda_; }
  int device() const { return device_; }
  const std::string& name() const { return name_; }
  const std::shared_ptr<StopSignal>& signal() const { return signal_; }

  // Where NCCL writes what it makes, and then taking it from there, at most once.
  ncclComm_t* made() { return &made_; }
  void adopt() { comm_ = take_made(); }
  bool open() const { return comm_.load() != nullptr; }

  using Body = std::function<ncclResult_t(ncclComm_t)>;
  // One call, or several that belong together, at this thread's turn; ncclInvalidUsage where it was
  // freed, kTimeout where another thread is stuck in a call until the deadline.
  Result<ncclResult_t> in_turn(const char* what, Deadline deadline, const Body& body);
  // The same as a Result, with kAborted where it was stopped or freed. ncclInProgress is success:
  // wait_ready() tells how it went on. `what` is what is called; the body may change it.
  Result<void> call(const char*& what, Deadline deadline, const Body& body);
  // As soon as no other call is being made, which is not waited for long. False: it was not called.
  bool call_soon(const Body& body);
  // Until nothing goes on behind (ncclInProgress), it failed, or it was stopped.
  Result<void> wait_ready(const std::string& what, Deadline deadline);
  // The same for what is made out of it: ended by that one's `stop`, and failing by the cause.
  Result<void> wait_ready(const std::string& what, Deadline deadline, StopSignal& stop);
  // What went wrong behind; nothing if another call is being made right now.
  std::optional<Error> async_error(const std::string& what);

  // It is made and the peers use it: from here on its errors are in_flight_error().
  void begin_use() { in_use_ = true; }
  Error in_use(Error error) const;

  // Ends all waits here, and those for what is being made out of it.
  void stop();
  // stop(), and begins to free it; what hangs on the device ends by that. Does not wait.
  void begin_abort();
  // begin_abort(), and waits for it. What does not end by the deadline goes on by itself.
  Result<void> abort(Deadline deadline);
  // After ncclCommFinalize has ended.
  Result<void> destroy(Deadline deadline);

  // One that NCCL is making out of this one; it is freed with this one unless it was finished.
  void begin_child(std::shared_ptr<NcclComm> child);
  void finish_child(const std::shared_ptr<NcclComm>& child);

 private:
  std::optional<ncclResult_t> state();
  Error failure(ncclResult_t result, const std::string& what);
  ncclComm_t take_made();
  ncclResult_t abort_now();
  void abort_children();

  const NcclTable& nccl_;
  const CudaTable& cuda_;
  const int device_;
  const std::string name_;  // NCCL keeps a pointer to it
  const std::shared_ptr<StopSignal> signal_ = std::make_shared<StopSignal>();

  std::timed_mutex turn_;
  std::atomic<ncclComm_t> comm_ = nullptr;  // null: not made yet, or freed

  std::atomic<bool> in_use_ = false;

  std::mutex made_mutex_;
  ncclComm_t made_ = nullptr;  // written by NCCL, for a parent's child at any time until it is done

  std::mutex failure_mutex_;
  std::optional<Error> failure_;  // what went wrong behind

  std::mutex aborted_mutex_;
  std::shared_future<ncclResult_t> aborted_;  // valid once it was begun

  std::mutex children_mutex_;
  std::vector<std::shared_ptr<NcclComm>> children_;
};

}  // namespace muster::comm::detail
