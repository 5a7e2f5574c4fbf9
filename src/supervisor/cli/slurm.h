// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "loop/result.h"
#include "supervisor/cli/engine.h"

namespace muster {

// Slurm's word for a step that srun started. A batch script outside of srun is one node and finds
// nothing here. `host` is gethostname().
Result<EngineFound> find_slurm(const Environment& environment, const std::string& host);

}  // namespace muster
