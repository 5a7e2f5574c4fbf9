// SPDX-License-Identifier: Apache-2.0
#include "comm.h"

#include <cstdio>
#include <cstdlib>

#include "faults.h"
#include "log.h"

ncclComm::~ncclComm() {
  join_job();
}

ncclResult_t ncclComm::get_state() {
  std::lock_guard lock(mutex);
  return state;
}

void ncclComm::set_state(ncclResult_t result) {
  std::lock_guard lock(mutex);
  state = result;
}

void ncclComm::fail(ncclResult_t result) {
  std::lock_guard lock(mutex);
  if (state == ncclSuccess || state == ncclInProgress) state = result;
}

doubles::Moments ncclComm::last_kernels() {
  std::lock_guard lock(mutex);
  return kernels;
}

ncclResult_t ncclComm::run_job(std::function<ncclResult_t()> body) {
  if (blocking) {
    ncclResult_t result = body();
    if (result != ncclSuccess) fail(result);
    return result;
  }
  join_job();
  std::lock_guard lock(mutex);
  if (state == ncclSuccess) state = ncclInProgress;
  job = std::thread([self = shared_from_this(), body = std::move(body)] {
    int code = doubles::fault("job");
    if (code == doubles::kStay) self->stop_all.wait();
    ncclResult_t result = code > 0 ? static_cast<ncclResult_t>(code) : body();
    std::lock_guard done(self->mutex);
    if (self->state == ncclInProgress) self->state = result;
  });
  return ncclInProgress;
}

void ncclComm::join_job() {
  std::thread ended;
  {
    std::lock_guard lock(mutex);
    ended = std::move(job);
  }
  if (!ended.joinable()) return;
  // The last one to let go of the communicator may be the job itself.
  if (ended.get_id() == std::this_thread::get_id()) return ended.detach();
  ended.join();
}

namespace doubles {
namespace {

std::mutex& comms_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

// Never freed: threads that outlive main() still ask.
std::map<ncclComm_t, std::shared_ptr<ncclComm>>& comms() {
  static auto* all = new std::map<ncclComm_t, std::shared_ptr<ncclComm>>;
  return *all;
}

}  // namespace

std::shared_ptr<ncclComm> find_comm(ncclComm_t handle, const char* function) {
  if (!handle) {
    warn("%s : comm argument is NULL", function);
    return nullptr;
  }
  std::lock_guard lock(comms_mutex());
  auto found = comms().find(handle);
  if (found != comms().end()) return found->second;
  std::fprintf(stderr, "libnccl_double: %s of a communicator that was freed\n", function);
  std::abort();
}

ncclComm_t add_comm(const std::shared_ptr<ncclComm>& comm) {
  std::lock_guard lock(comms_mutex());
  comms()[comm.get()] = comm;
  return comm.get();
}

void remove_comm(ncclComm_t handle) {
  std::shared_ptr<ncclComm> removed;
  std::lock_guard lock(comms_mutex());
  auto found = comms().find(handle);
  if (found == comms().end()) return;
  removed = std::move(found->second);
  comms().erase(found);
}

size_t comms_left() {
  std::lock_guard lock(comms_mutex());
  return comms().size();
}

ncclResult_t ensure_ready(ncclComm& comm) {
  ncclResult_t state = comm.get_state();
  if (state == ncclInProgress) {
    warn("Attempt to use communicator before the previous operation returned ncclSuccess");
    return ncclInvalidArgument;
  }
  return state;
}

}  // namespace doubles
