// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>

#include <optional>
#include <string_view>

namespace muster::comm::detail {

// What is usually behind an error of NCCL or CUDA: one line that says what to do.
struct Cause {
  ErrorCode code;
  std::string_view text;
};

// From what the libraries said: result texts, NCCL's last error and its warnings, in any order.
std::optional<Cause> usual_cause(std::string_view said);

}  // namespace muster::comm::detail
