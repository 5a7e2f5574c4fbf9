// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <memory>
#include <vector>

#include "comm.h"

namespace doubles {

enum class Call {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kRecv,
};

// One call of a communication function, with its arguments.
struct Operation {
  Call call = Call::kAllReduce;
  const void* in = nullptr;
  void* out = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclInt8;
  Reduction reduction{};
  int root_or_peer = 0;
  std::shared_ptr<ncclComm> comm{};
  cudaStream_t stream = nullptr;

  bool point_to_point() const { return call == Call::kSend || call == Call::kRecv; }
  size_t bytes() const { return count * size_of_type(type); }
};

// Connects what these operations of one communicator need, and puts them on their streams as one
// kernel: its collectives one after the other, its sends and receives all at the same time.
ncclResult_t launch(const std::shared_ptr<ncclComm>& comm,
                    const std::vector<Operation>& operations);

}  // namespace doubles
