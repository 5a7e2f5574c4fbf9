// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <functional>
#include <memory>

#include "kernel.h"

namespace doubles {

// What each API function does first: the faults. Other than ncclSuccess is to be answered.
ncclResult_t enter_nccl(const char* function);

// Begins one operation, or keeps it for this thread's ncclGroupEnd.
ncclResult_t submit(Operation operation);
// Does (or begins, where blocking is off) something with a communicator, or keeps it for this
// thread's ncclGroupEnd, which does all such things at the same time.
ncclResult_t submit_job(const std::shared_ptr<ncclComm>& comm, std::function<ncclResult_t()> body);
// A wrong call makes its whole group fail.
ncclResult_t refuse(ncclResult_t result);

}  // namespace doubles
