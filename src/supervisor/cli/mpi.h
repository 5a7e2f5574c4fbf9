// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loop/result.h"
#include "supervisor/cli/engine.h"

namespace muster {

// Open MPI's mpirun, one start a node (--map-by ppr:1:node).
Result<EngineFound> find_open_mpi(const Environment& environment);

// MPICH's and Intel MPI's mpiexec: PMI_SIZE and PMI_RANK with MPI_LOCALNRANKS. They do not say
// where rank 0 is.
Result<EngineFound> find_hydra(const Environment& environment);

}  // namespace muster
