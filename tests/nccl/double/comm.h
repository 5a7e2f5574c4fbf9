// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "links.h"
#include "reduce.h"
#include "stream.h"

// A communicator: what ncclComm_t points to. It lives as long as it is registered or a thread of
// ours still uses it.
struct ncclComm : std::enable_shared_from_this<ncclComm> {
  int rank = 0;
  int ranks = 1;
  int device = 0;
  bool blocking = true;

  std::unique_ptr<doubles::Links> links;
  int meetings = 0;  // how often the ranks have met: part of each meeting's name

  doubles::StopSignal stop_kernels;  // revoke, shrink with abort, abort
  doubles::StopSignal stop_all;      // abort
  std::atomic<bool> revoked{false};
  bool finalized = false;
  ncclUniqueId grown{};  // ncclCommGetUniqueId: what the next ncclCommGrow is made from

  std::mutex mutex;  // for what follows
  ncclResult_t state = ncclSuccess;
  doubles::Moments kernels;  // the last one launched: the next begins when it has ended
  std::map<int, doubles::Reduction> reductions;  // PreMulSum, by ncclRedOp_t
  std::map<void*, std::pair<void*, size_t>> registered;
  std::thread job;  // what goes on in the background where blocking is off

  ~ncclComm();
  ncclResult_t get_state();
  void set_state(ncclResult_t result);
  void fail(ncclResult_t result);  // keeps an earlier failure
  doubles::Moments last_kernels();

  // Blocking: does it and gives its result. Otherwise begins it, the state is ncclInProgress until
  // it has ended, which is what this gives.
  ncclResult_t run_job(std::function<ncclResult_t()> body);
  // Waits for the end of run_job()'s thread.
  void join_job();
};

namespace doubles {

// Communicators that were made and not yet freed. A handle of another one is a mistake that NCCL
// answers with a crash, if one is lucky: so this ends the process and says why.
std::shared_ptr<ncclComm> find_comm(ncclComm_t handle, const char* function);
ncclComm_t add_comm(const std::shared_ptr<ncclComm>& comm);
void remove_comm(ncclComm_t handle);
size_t comms_left();

// ncclSuccess if operations may be begun on it; otherwise what they must answer.
ncclResult_t ensure_ready(ncclComm& comm);

}  // namespace doubles
