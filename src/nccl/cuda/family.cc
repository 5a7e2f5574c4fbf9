// SPDX-License-Identifier: Apache-2.0
// How NCCL communicators come into being: from ids, and out of others.
#include <algorithm>

#include "nccl/cuda/device.h"
#include "nccl/cuda/make.h"
#include "nccl/cuda/nccl_backend.h"
#include "nccl/cuda/trouble.h"
#include "nccl/cuda/unique_id.h"
#include "nccl/join/roll_call.h"

namespace muster::comm::detail {
namespace {

using Clock = std::chrono::steady_clock;

// NCCL_SHRINK_ABORT, which older headers do not have: ends what hangs in the parent first.
constexpr int kShrinkAbort = 1;

Duration since(Clock::time_point begin) {
  return std::chrono::duration_cast<Duration>(Clock::now() - begin);
}

struct Parts {
  const CudaTable* cuda;
  const NcclTable* nccl;
  int device;
};

// What is missing is said in the order in which it has to be mended: driver, GPU, NCCL.
Result<Parts> find_parts(const BackendPlan& plan) {
  Result<const CudaTable*> cuda = cuda_with_driver();
  if (!cuda) return cuda.error();
  const Result<int> visible = visible_devices(**cuda);
  if (!visible) return visible.error();
  const Result<int> device = choose_device(*visible, plan.options.device, plan.local_rank);
  if (!device) return device.error();
  Result<const NcclTable*> nccl = nccl_table();
  if (!nccl) return nccl.error();
  return Parts{*cuda, *nccl, *device};
}

MakeCall call_from_ids(const NcclTable& nccl, const BackendPlan& plan, Ids ids) {
  return [&nccl, rank = plan.rank, size = plan.size, ids = std::move(ids)](
             ncclComm_t* made, ncclConfig_t* config) mutable {
    if (ids.grown) return nccl.CommGrow(nullptr, size, ids.ids.data(), rank, made, config);
    if (ids.ids.size() == 1) {
      return nccl.CommInitRankConfig(made, size, ids.ids.front(), rank, config);
    }
    return nccl.CommInitRankScalable(made, size, rank, static_cast<int>(ids.ids.size()),
                                     ids.ids.data(), config);
  };
}

// What rank 0 has decided needs a function that this rank's library lacks.
Result<void> check_usable(const NcclTable& nccl, const Ids& ids) {
  const bool lacks = ids.grown ? nccl.CommGrow == nullptr
                               : ids.ids.size() > 1 && nccl.CommInitRankScalable == nullptr;
  if (!lacks) return {};
  return Error{.code = ErrorCode::kMismatch,
               .message = "nccl: rank 0 has a newer NCCL than this rank's " +
                          nccl_version_text(nccl.version) + " (" + nccl.path + ")"};
}

Result<std::unique_ptr<CommBackend>> make_from_store(const BackendPlan& plan) {
  const Result<Parts> parts = find_parts(plan);
  if (!parts) return parts.error();
  const NcclTable& nccl = *parts->nccl;
  const Clock::time_point begin = Clock::now();
  Result<Ids> ids = exchange_ids(nccl, plan);
  if (!ids) return ids.error();
  const Result<void> usable = check_usable(nccl, *ids);
  if (!usable) return usable.error();
  const Duration store = since(begin);
  const Clock::time_point connecting = Clock::now();
  const char* name = ids->grown             ? "ncclCommGrow"
                     : ids->ids.size() == 1 ? "ncclCommInitRankConfig"
                                            : "ncclCommInitRankScalable";
  const auto comm = std::make_shared<NcclComm>(nccl, *parts->cuda, parts->device, plan.name);
  const Result<void> made =
      make_comm(comm, nullptr, name, call_from_ids(nccl, plan, *std::move(ids)), plan.deadline);
  if (!made) return made.error();
  return NcclBackend::own(plan, comm, store, connecting);
}

// Whether each rank of the new communicator says yes.
Result<bool> all_say_yes(const BackendPlan& plan, bool own) {
  RollCall call(*plan.store, "nccl/shrink", plan.world_ranks, plan.rank, "nccl: shrinking");
  const Result<void> answered = call.answer(own ? "yes" : "no");
  if (!answered) return answered.error();
  if (plan.rank != 0) {
    const Result<std::string> verdict = call.result(plan.deadline);
    if (!verdict) return verdict.error();
    return *verdict == "yes";
  }
  const Result<std::vector<std::string>> answers = call.collect(plan.deadline);
  if (!answers) return answers.error();
  const bool all =
      std::ranges::all_of(*answers, [](const auto& answer) { return answer == "yes"; });
  const Result<void> published = call.publish(std::string(all ? "yes" : "no"));
  if (!published) return published.error();
  return all;
}

}  // namespace

Result<std::unique_ptr<CommBackend>> make_nccl_backend(const BackendPlan& plan) {
  Result<std::unique_ptr<CommBackend>> made = make_from_store(plan);
  if (!made) publish_failure(plan, made.error());
  return made;
}

Result<std::unique_ptr<CommBackend>> NcclBackend::make_child(const char* name,
                                                             const BackendPlan& plan,
                                                             ChildCall call) {
  if (!driver_usable()) return stopped_error(name);
  const Clock::time_point begin = Clock::now();
  const auto comm = std::make_shared<NcclComm>(nccl(), cuda(), comm_->device(), plan.name);
  const Result<void> made = make_comm(
      comm, comm_, name,
      [parent = comm_, name, deadline = plan.deadline, call = std::move(call)](
          ncclComm_t* where, ncclConfig_t* config) {
        return parent->in_turn(name, deadline,
                               [&](ncclComm_t of) { return call(of, where, config); });
      },
      plan.deadline);
  if (!made) return made.error();
  Result<std::unique_ptr<CommBackend>> owned = std::unique_ptr<CommBackend>();
  if (comm->open()) owned = NcclBackend::own(plan, comm, Duration(), begin);
  comm_->finish_child(comm);
  return owned;
}

CommBackend::Made NcclBackend::split(int color, int key, const BackendPlan& plan) {
  if (nccl().CommSplit == nullptr || !comm_->open()) return std::nullopt;
  // NCCL's rule for all that is made out of another: nothing may be under way there.
  const Result<void> settled = settle(plan.deadline);
  if (!settled) return settled.error();
  const int nccl_color = color == kNoColor ? NCCL_SPLIT_NOCOLOR : color;
  return make_child("ncclCommSplit", plan,
                    [split = nccl().CommSplit, nccl_color, key](ncclComm_t parent, ncclComm_t* made,
                                                                ncclConfig_t* config) {
                      return split(parent, nccl_color, key, made, config);
                    });
}

// Whether NCCL can make others out of it, as far as this rank knows.
bool NcclBackend::usable_for_shrink(Deadline deadline) {
  if (!comm_->open() || !driver_usable() || (comm_->signal()->stopped() && !revoked_)) {
    return false;
  }
  // A revoke may still be going on.
  StopSignal never;
  return comm_->wait_ready("ncclCommShrink", deadline, never).has_value();
}

// NCCL's shrink speaks over the old communicator's connections. Where these are broken for one of
// the ranks all of them must take another way, and each knows only of its own.
CommBackend::Made NcclBackend::shrink(std::span<const int> excluded, const BackendPlan& plan) {
  if (nccl().CommShrink == nullptr || excluded.empty()) return std::nullopt;
  // What is under way may end well while half of the time is left; then it is ended by force. The
  // other half is for the shrink, or for making a new one.
  const Deadline half = Clock::now() + (plan.deadline - Clock::now()) / 2;
  const bool whole = !comm_->signal()->stopped() && settle(half);
  const Result<bool> usable = all_say_yes(plan, usable_for_shrink(half));
  if (!usable) return usable.error();
  if (!*usable) return std::nullopt;
  const int flags = whole || revoked_ ? 0 : kShrinkAbort;
  return make_child("ncclCommShrink", plan,
                    [shrink = nccl().CommShrink, flags,
                     without = std::vector<int>(excluded.begin(), excluded.end())](
                        ncclComm_t parent, ncclComm_t* made, ncclConfig_t* config) mutable {
                      return shrink(parent, without.data(), static_cast<int>(without.size()), made,
                                    config, flags);
                    });
}

Result<ncclUniqueId> NcclBackend::grown_id(const BackendPlan& plan) {
  struct Answer {
    ncclUniqueId id{};
    Result<ncclResult_t> result = ncclSuccess;
  };
  // It speaks to the other members, which may be gone.
  const auto answer = std::make_shared<Answer>();
  constexpr const char* kWhat = "ncclCommGetUniqueId";
  const auto ask = [comm = comm_, deadline = plan.deadline, answer] {
    const DeviceScope device(comm->cuda(), comm->device());
    answer->result = comm->in_turn(kWhat, deadline, [&](ncclComm_t of) {
      return comm->nccl().CommGetUniqueId(of, &answer->id);
    });
  };
  const Ended ended = run_bounded(comm_->signal(), plan.deadline, ask);
  if (ended == Ended::kStopped) return stopped_error(kWhat);
  if (ended == Ended::kLate) return late_error(kWhat);
  if (!answer->result) return answer->result.error();
  if (*answer->result != ncclSuccess) return nccl_error(*answer->result, kWhat);
  return answer->id;
}

CommBackend::Made NcclBackend::grow(int /*joining*/, const BackendPlan& plan) {
  if (nccl().CommGrow == nullptr || nccl().CommGetUniqueId == nullptr || !comm_->open()) {
    return std::nullopt;
  }
  const Result<void> settled = settle(plan.deadline);
  if (!settled) return settled.error();
  std::optional<ncclUniqueId> id;
  if (rank_ == 0) {
    const Result<ncclUniqueId> made = grown_id(plan);
    const Result<void> published = made ? publish_grown(plan, *made) : Result<void>(made.error());
    if (!published) {
      publish_failure(plan, published.error());
      return published.error();
    }
    id = *made;
  }
  return make_child("ncclCommGrow", plan,
                    [grow = nccl().CommGrow, id, size = plan.size](
                        ncclComm_t parent, ncclComm_t* made, ncclConfig_t* config) {
                      return grow(parent, size, id ? &*id : nullptr, -1, made, config);
                    });
}

}  // namespace muster::comm::detail
