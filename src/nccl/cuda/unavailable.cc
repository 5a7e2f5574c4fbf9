// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/backend.h"

namespace muster::comm::detail {

Result<std::unique_ptr<CommBackend>> make_nccl_backend(const BackendPlan& /*plan*/) {
  return Error{.code = ErrorCode::kUnavailable,
               .message =
                   "nccl: not in this build, which found no cuda_runtime_api.h or no nccl.h; "
                   "install the CUDA toolkit's and NCCL's headers and build muster again"};
}

std::vector<std::pair<std::string, std::string>> nccl_must_agree() {
  return {{"nccl version", "not in this build"}};
}

std::string nccl_device_identity(int /*device*/) {
  return {};
}

}  // namespace muster::comm::detail
