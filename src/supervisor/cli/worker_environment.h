// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loop/result.h"
#include "supervisor/cli/plan.h"

namespace muster {

// Names the file into which a worker may write how far it is, whatever it is written in.
inline constexpr const char* kProgressVariable = "MUSTER_PROGRESS";

// What worker `local_rank` gets in its environment that does not change between
// attempts. `devices` is CUDA_VISIBLE_DEVICES as the job has it. Error: a virtual local rank for
// which CUDA_VISIBLE_DEVICES has no entry; code 2.
Result<Environment> worker_environment(const LaunchPlan& plan, int local_rank,
                                       const std::optional<std::string>& devices);

}  // namespace muster
