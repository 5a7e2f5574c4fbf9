// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

namespace doubles {

// What the library says of itself, as NCCL does: NCCL_DEBUG (VERSION, WARN, INFO) to stdout or to
// NCCL_DEBUG_FILE (%h is the host, %p the process). A warning is the last error too, whether it is
// printed or not.
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void info(const char* format, ...);
// Warns and gives `result`.
ncclResult_t cuda_failure(cudaError_t error);
const char* last_error_text();

// DOUBLE_NCCL_VERSION, else what this variant of the library says.
int library_version();
void say_version();

}  // namespace doubles
