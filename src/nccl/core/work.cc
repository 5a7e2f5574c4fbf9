// SPDX-License-Identifier: Apache-2.0
#include <muster/comm/work.h>

#include "nccl/core/work_state.h"

namespace muster::comm {

Result<void> Work::wait() {
  if (error_) return *error_;
  if (state_) return state_->wait();
  return {};
}

Result<void> Work::wait(Duration timeout) {
  if (error_) return *error_;
  if (state_) return state_->wait(timeout);
  return {};
}

bool Work::test() {
  return error_ != nullptr || state_ == nullptr || state_->test();
}

}  // namespace muster::comm
