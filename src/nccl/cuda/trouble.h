// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>

#include <string>

#include "nccl/core/operation.h"
#include "nccl/cuda/tables.h"

// Errors with all that the libraries say about them: what the call answered, NCCL's last error, its
// new warnings and the usual cause. `call` is what was called, "ncclAllReduce" say.
namespace muster::comm::detail {

Error nccl_error(ncclResult_t result, const std::string& call);
// After what went well: what NCCL has said until now explains no later error.
void forget_nccl_words();
Error cuda_error(cudaError_t error, const std::string& call);
// The same of what was already under way with the peers. A cause such as an old driver, where
// nothing was begun, leaves a communicator as it was; here it is broken, so the code says no more
// than that.
Error in_flight_error(Error error);
Error stopped_error(const std::string& call);
Error late_error(const std::string& call, const std::string& why = {});

inline Result<void> cuda_result(cudaError_t error, const std::string& call) {
  if (error == cudaSuccess) return {};
  return cuda_error(error, call);
}

}  // namespace muster::comm::detail
