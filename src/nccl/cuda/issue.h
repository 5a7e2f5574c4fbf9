// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "nccl/core/operation.h"
#include "nccl/cuda/tables.h"

namespace muster::comm::detail {

// Who calls: a communicator and this rank's place in it.
struct GroupCaller {
  const NcclTable& nccl;
  ncclComm_t comm;
  int rank;
  int size;
};

// What a group of calls came to, and which of them failed.
struct Issued {
  ncclResult_t result = ncclSuccess;  // or ncclInProgress
  const char* call = "ncclGroupEnd";
};

// Makes the calls of all operations as one group. What NCCL has no call for is a group of others:
// broadcasts and reductions for the forms with counts, sends and receives for the rest.
Issued issue_group(const GroupCaller& caller, std::span<const Operation> operations);

cudaStream_t stream_of(const Operation& operation);
ncclDataType_t nccl_type(DataType type);
ncclRedOp_t nccl_reduction(ReduceOp op);

}  // namespace muster::comm::detail
