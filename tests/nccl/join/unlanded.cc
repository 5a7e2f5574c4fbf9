// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/backend.h"

namespace muster::comm::detail {
[[gnu::weak]] Result<std::unique_ptr<CommBackend>> make_nccl_backend(const BackendPlan&) {
  return Error{ErrorCode::kUnavailable, "not built in"};
}
[[gnu::weak]] std::vector<std::pair<std::string, std::string>> nccl_must_agree() {
  return {};
}
[[gnu::weak]] std::string nccl_device_identity(int) {
  return "";
}
}  // namespace muster::comm::detail
