// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/backend.h"
#include "nccl/join/world_impl.h"

namespace muster::comm {
namespace detail {
[[gnu::weak]] Result<std::unique_ptr<CommBackend>> make_gloo_backend(const BackendPlan&) {
  return Error{ErrorCode::kUnavailable, "not built in"};
}
[[gnu::weak]] Result<std::unique_ptr<CommBackend>> make_nccl_backend(const BackendPlan&) {
  return Error{ErrorCode::kUnavailable, "not built in"};
}
}  // namespace detail
[[gnu::weak]] Result<std::shared_ptr<muster::Store>> World::Impl::open_store(const std::string&,
                                                                             Duration) {
  return Error{ErrorCode::kUnavailable, "not built in"};
}
}  // namespace muster::comm
