// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "nccl/cuda/comm.h"

namespace muster::comm::detail {

// NCCL's call that makes a communicator: writes it to `made`, now or (out of a parent) later. An
// Error: it was not called.
using MakeCall = std::function<Result<ncclResult_t>(ncclComm_t* made, ncclConfig_t* config)>;

// Makes `comm`, which does not block, and waits until it is ready, at most until the deadline or
// until its signal or its parent's is stopped. `parent` may be null. When it fails nothing of
// `comm` is left, except with what a parent is still doing, which ends with the parent.
Result<void> make_comm(const std::shared_ptr<NcclComm>& comm,
                       const std::shared_ptr<NcclComm>& parent, const char* name, MakeCall call,
                       Deadline deadline);

}  // namespace muster::comm::detail
