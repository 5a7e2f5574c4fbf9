// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/buffer.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace muster::comm::detail {

using Deadline = std::chrono::steady_clock::time_point;

// The numbers stand in the worker's page that the launcher reads: never change them.
enum class OpKind : uint8_t {
  kSend = 0,
  kRecv = 1,
  kBroadcast = 2,
  kReduce = 3,
  kAllReduce = 4,
  kScatter = 5,
  kGather = 6,
  kAllGather = 7,
  kReduceScatter = 8,
  kAllToAll = 9,
  kBarrier = 10,
};
constexpr int kOpKinds = 11;

const char* to_string(OpKind kind);  // "all_reduce", ...: the names of the calls

// One operation as a backend gets it: checked (Communicator: ranks in range, sizes that fit, no
// unknown memory), so a backend need not check again. Counts are elements.
struct Operation {
  OpKind kind = OpKind::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  int root_or_peer = 0;
  int tag = 0;  // point to point
  ConstBuffer in{};
  Buffer out{};
  // all_gather, reduce_scatter: how much of each rank; empty: the same of all. all_to_all: what
  // goes to each rank in `in`.
  std::vector<size_t> counts{};
  std::vector<size_t> out_counts{};  // all_to_all: what comes from each rank

  bool point_to_point() const { return kind == OpKind::kSend || kind == OpKind::kRecv; }
};

}  // namespace muster::comm::detail
