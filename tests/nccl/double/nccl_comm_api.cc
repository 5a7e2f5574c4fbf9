// SPDX-License-Identifier: Apache-2.0
// NCCL's functions that make, change and end communicators. All signatures are nccl.h's.
#include <nccl.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "bootstrap.h"
#include "comm.h"
#include "group.h"
#include "log.h"
#include "making.h"

using namespace doubles;

namespace {

using Ids = std::vector<ncclUniqueId>;

// The handle is there before the init has ended, so that another thread can abort it.
ncclResult_t init_rank(ncclComm_t* out, int ranks, Ids ids, int rank, const ncclConfig_t* config) {
  if (!out) return refuse(ncclInvalidArgument);
  *out = nullptr;
  auto comm = std::make_shared<ncclComm>();
  comm->rank = rank;
  comm->ranks = ranks;
  if (cudaError_t error = cudaGetDevice(&comm->device)) return refuse(cuda_failure(error));
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    warn("Invalid rank requested : %d/%d", rank, ranks);
    return refuse(ncclInvalidArgument);
  }
  if (ncclResult_t wrong = apply_config(*comm, config, true)) return refuse(wrong);
  Fd listener;
  PeerInfo own;
  if (ncclResult_t failed = begin_listening(*comm, &listener, &own)) return refuse(failed);
  *out = add_comm(comm);
  auto shared_listener = std::make_shared<Fd>(std::move(listener));
  return submit_job(comm, [=, ids = std::move(ids)] {
    ncclResult_t result = init_comm(*comm, ids, std::move(*shared_listener), own);
    if (result != ncclSuccess && comm->blocking) {
      remove_comm(comm.get());
      *out = nullptr;
    }
    return result;
  });
}

// What split and shrink have in common.
ncclResult_t make_child(const std::shared_ptr<ncclComm>& parent, std::vector<int> members,
                        int color, int key, ncclComm_t* out, const ncclConfig_t* config) {
  if (!out) return refuse(ncclInvalidArgument);
  *out = nullptr;
  std::shared_ptr<ncclComm> child;
  if (color >= 0) {
    child = std::make_shared<ncclComm>();
    child->device = parent->device;
    if (ncclResult_t wrong = apply_config(*child, config, parent->blocking)) return refuse(wrong);
    if (!parent->blocking) child->state = ncclInProgress;
    *out = add_comm(child);
  }
  int turn = parent->meetings++;
  return submit_job(parent, [=, members = std::move(members)] {
    ncclResult_t result = init_child(*parent, members, turn, color, key, child.get());
    if (child && !parent->blocking) child->set_state(result);
    if (child && parent->blocking && result != ncclSuccess) {
      remove_comm(child.get());
      *out = nullptr;
    }
    return result;
  });
}

std::vector<int> all_ranks(const ncclComm& comm) {
  std::vector<int> ranks(static_cast<size_t>(comm.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// The communicator of a call that may not come while another is going on.
ncclResult_t ready_comm(const char* function, ncclComm_t handle, std::shared_ptr<ncclComm>* comm) {
  if (ncclResult_t fault = enter_nccl(function)) return refuse(fault);
  *comm = find_comm(handle, function);
  if (!*comm) return refuse(ncclInvalidArgument);
  ncclResult_t state = ensure_ready(**comm);
  return state == ncclSuccess ? state : refuse(state);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (ncclResult_t fault = enter_nccl("ncclGetUniqueId")) return fault;
  return id ? make_unique_id(id) : ncclInvalidArgument;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (ncclResult_t fault = enter_nccl("ncclCommInitRank")) return refuse(fault);
  return init_rank(comm, ranks, {id}, rank, nullptr);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (ncclResult_t fault = enter_nccl("ncclCommInitRankConfig")) return refuse(fault);
  return init_rank(comm, ranks, {id}, rank, config);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int count,
                                      ncclUniqueId* ids, ncclConfig_t* config) {
  if (ncclResult_t fault = enter_nccl("ncclCommInitRankScalable")) return refuse(fault);
  if (count < 1 || !ids) return refuse(ncclInvalidArgument);
  return init_rank(comm, ranks, Ids(ids, ids + count), rank, config);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  if (ncclResult_t fault = enter_nccl("ncclCommInitAll")) return fault;
  int before = 0;
  if (cudaError_t error = cudaGetDevice(&before)) return cuda_failure(error);
  if (!comms || count < 1) return ncclInvalidArgument;
  ncclUniqueId id;
  if (ncclResult_t failed = make_unique_id(&id)) return failed;
  ncclGroupStart();
  for (int i = 0; i < count; ++i) {
    cudaSetDevice(devices ? devices[i] : i);
    init_rank(&comms[i], count, {id}, i, nullptr);
  }
  cudaSetDevice(before);
  return ncclGroupEnd();
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* out,
                           ncclConfig_t* config) {
  std::shared_ptr<ncclComm> comm;
  if (ncclResult_t wrong = ready_comm("ncclCommSplit", handle, &comm)) return wrong;
  if (color < NCCL_SPLIT_NOCOLOR) return refuse(ncclInvalidArgument);
  return make_child(comm, all_ranks(*comm), color, key, out, config);
}

// With NCCL_SHRINK_ABORT the parent may be broken: what goes on is stopped first.
ncclResult_t ncclCommShrink(ncclComm_t handle, int* excluded, int count, ncclComm_t* out,
                            ncclConfig_t* config, int flags) {
  if (ncclResult_t fault = enter_nccl("ncclCommShrink")) return refuse(fault);
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommShrink");
  if (!comm || !excluded || count < 1) return refuse(ncclInvalidArgument);
  if (flags & NCCL_SHRINK_ABORT) {
    comm->stop_kernels.raise();
    comm->join_job();
    drain(*comm);
    comm->set_state(ncclSuccess);
  }
  if (ncclResult_t state = ensure_ready(*comm)) return refuse(state);
  std::vector<int> members = all_ranks(*comm);
  std::erase_if(members, [&](int rank) { return std::count(excluded, excluded + count, rank); });
  if (!std::count(members.begin(), members.end(), comm->rank)) return refuse(ncclInvalidArgument);
  return make_child(comm, std::move(members), 0, 0, out, config);
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  std::shared_ptr<ncclComm> comm;
  if (ncclResult_t wrong = ready_comm("ncclCommFinalize", handle, &comm)) return wrong;
  if (comm->finalized || comm->revoked) return refuse(ncclInvalidArgument);
  comm->finalized = true;
  return submit_job(comm, [comm] { return drain(*comm); });
}

ncclResult_t ncclCommRevoke(ncclComm_t handle, int flags) {
  if (ncclResult_t fault = enter_nccl("ncclCommRevoke")) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommRevoke");
  if (!comm || flags != NCCL_REVOKE_DEFAULT) return ncclInvalidArgument;
  if (comm->revoked.exchange(true)) return ncclInvalidUsage;
  comm->stop_kernels.raise();
  comm->join_job();
  comm->set_state(ncclSuccess);
  return comm->run_job([comm] { return drain(*comm); });
}

// Waits for what goes on, for ever if it must; ncclCommAbort does not.
ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (ncclResult_t fault = enter_nccl("ncclCommDestroy")) return fault;
  if (!handle) return ncclSuccess;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommDestroy");
  comm->join_job();
  drain(*comm);
  remove_comm(handle);
  return ncclSuccess;
}

// What runs is stopped; but what waits on a stream behind something else that never ends is waited
// for, as with NCCL.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (ncclResult_t fault = enter_nccl("ncclCommAbort")) return fault;
  if (!handle) return ncclSuccess;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommAbort");
  comm->stop_kernels.raise();
  comm->stop_all.raise();
  comm->join_job();
  drain(*comm);
  remove_comm(handle);
  return ncclSuccess;
}

#define PROFILING_NAME(name) decltype(name) p##name __attribute__((alias(#name)));
PROFILING_NAME(ncclGetUniqueId)
PROFILING_NAME(ncclCommInitRank)
PROFILING_NAME(ncclCommInitRankConfig)
PROFILING_NAME(ncclCommInitRankScalable)
PROFILING_NAME(ncclCommInitAll)
PROFILING_NAME(ncclCommSplit)
PROFILING_NAME(ncclCommShrink)
PROFILING_NAME(ncclCommFinalize)
PROFILING_NAME(ncclCommRevoke)
PROFILING_NAME(ncclCommDestroy)
PROFILING_NAME(ncclCommAbort)
#undef PROFILING_NAME

}  // extern "C"
