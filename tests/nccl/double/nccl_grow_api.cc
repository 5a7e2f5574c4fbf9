// SPDX-License-Identifier: Apache-2.0
// NCCL 2.29's functions by which a communicator grows, as its documentation tells them.
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

constexpr ncclUniqueId kNoId{};

bool same_id(const ncclUniqueId& a, const ncclUniqueId& b) {
  return std::equal(std::begin(a.internal), std::end(a.internal), std::begin(b.internal));
}

// The parent's ranks meet, so that all know the id that one of them has.
ncclResult_t find_id(ncclComm& parent, int turn, ncclUniqueId* id) {
  std::vector<int> everybody(static_cast<size_t>(parent.ranks));
  std::iota(everybody.begin(), everybody.end(), 0);
  PeerInfo own;
  own.grown = parent.grown;
  std::vector<PeerInfo> infos;
  Outcome outcome = parent.links->meet(everybody, turn, own, &infos, parent.stop_all);
  if (outcome != Outcome::kDone) return result_of(outcome, "while the parent's ranks meet");
  parent.grown = kNoId;
  for (const PeerInfo& info : infos) {
    if (same_id(info.grown, kNoId)) continue;
    *id = info.grown;
    return ncclSuccess;
  }
  warn("ncclCommGrow : no rank has called ncclCommGetUniqueId");
  return ncclInvalidUsage;
}

ncclResult_t grow(const std::shared_ptr<ncclComm>& parent, ncclUniqueId id, ncclComm_t* out,
                  const std::shared_ptr<ncclComm>& child) {
  Fd listener;
  PeerInfo own;
  if (ncclResult_t failed = begin_listening(*child, &listener, &own)) return refuse(failed);
  *out = add_comm(child);
  auto shared_listener = std::make_shared<Fd>(std::move(listener));
  int turn = parent ? parent->meetings++ : 0;
  if (parent && !child->blocking) child->set_state(ncclInProgress);
  return submit_job(parent ? parent : child, [=]() mutable {
    ncclResult_t result = parent ? find_id(*parent, turn, &id) : ncclSuccess;
    if (result == ncclSuccess)
      result = init_comm(*child, {&id, 1}, std::move(*shared_listener), own);
    if (parent && !child->blocking) child->set_state(result);
    return result;
  });
}

}  // namespace

extern "C" {

ncclResult_t ncclCommGetUniqueId(ncclComm_t handle, ncclUniqueId* id) {
  if (ncclResult_t fault = enter_nccl("ncclCommGetUniqueId")) return fault;
  std::shared_ptr<ncclComm> comm = find_comm(handle, "ncclCommGetUniqueId");
  if (!comm || !id) return ncclInvalidArgument;
  if (ncclResult_t state = ensure_ready(*comm)) return state;
  ncclResult_t made = make_unique_id(id);
  if (made == ncclSuccess) comm->grown = *id;
  return made;
}

// Those who are there keep their ranks (`rank` is -1); those who join say theirs and have no
// `comm`.
ncclResult_t ncclCommGrow(ncclComm_t handle, int ranks, const ncclUniqueId* id, int rank,
                          ncclComm_t* out, ncclConfig_t* config) {
  if (ncclResult_t fault = enter_nccl("ncclCommGrow")) return refuse(fault);
  if (!out || (!handle && !id)) return refuse(ncclInvalidArgument);
  *out = nullptr;
  std::shared_ptr<ncclComm> parent;
  if (handle) parent = find_comm(handle, "ncclCommGrow");
  if (parent && ensure_ready(*parent) != ncclSuccess) return refuse(ensure_ready(*parent));
  if ((parent && (rank != -1 || ranks <= parent->ranks)) || (!parent && rank < 0) ||
      rank >= ranks) {
    warn("ncclCommGrow : invalid rank %d of %d", rank, ranks);
    return refuse(ncclInvalidArgument);
  }
  auto child = std::make_shared<ncclComm>();
  child->rank = parent ? parent->rank : rank;
  child->ranks = ranks;
  if (parent) {
    child->device = parent->device;
  } else if (cudaError_t error = cudaGetDevice(&child->device)) {
    return refuse(cuda_failure(error));
  }
  if (ncclResult_t wrong = apply_config(*child, config, !parent || parent->blocking)) {
    return refuse(wrong);
  }
  return grow(parent, id ? *id : kNoId, out, child);
}

}  // extern "C"
