// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/data_type.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nccl/core/operation.h"
#include "nccl/report/worker_page.h"

namespace muster::worker_page {

// What a worker's page says, as plain values. Its bytes come from a program that may be broken or
// hostile: numbers are in range, names have no control characters (but may be no UTF-8), and what
// was being written while it was read, or was left half written by a death, is counted in `torn`
// and left out.

struct PageOperation {
  uint64_t sequence = 0;
  comm::detail::OpKind kind = comm::detail::OpKind::kBarrier;
  comm::DataType type = comm::DataType::kUint8;
  comm::ReduceOp reduce = comm::ReduceOp::kSum;
  OpState state = OpState::kRunning;
  uint64_t count = 0;
  int32_t root_or_peer = 0;  // a rank of the communicator; 0 where there is none
  int32_t tag = 0;           // not negative
  int64_t start_ns = 0;
  int64_t end_ns = 0;  // 0: not ended
};

struct PageCommunicator {
  uint64_t id = 0;
  int32_t rank = 0;
  int32_t size = 1;
  bool closed = false;
  std::string name;
  std::vector<int32_t> members;  // world ranks, by rank; empty: not listed
  uint64_t collectives = 0;      // sequence of the last one that was entered
  uint64_t messages = 0;
  std::vector<PageOperation> operations;  // that are still in the ring, the oldest first
};

struct PageProgress {
  int64_t step = -1;
  int64_t total = -1;
  std::optional<double> loss;
  int64_t reported_ns = 0;   // 0: never
  int64_t heartbeat_ns = 0;  // 0: never
  std::vector<std::pair<std::string, double>> values;
};

struct PageContent {
  int32_t owner = 0;  // a pid as the worker sees it
  int32_t rank = -1;
  int32_t world_size = 0;
  PageProgress progress;
  std::vector<PageCommunicator> communicators;
  int torn = 0;
};

constexpr int32_t kMaxWorld = 1 << 24;
// Of sequences and counts; more is taken for rubbish.
constexpr uint64_t kMaxNumber = uint64_t{1} << 60;

// Reads the page behind `fd` as it is now, with a bounded number of reads at fixed places; holes
// stay holes. nullopt: nobody has written one, or of a layout that is not ours.
std::optional<PageContent> read_page(int fd);

// "all_reduce", ...
const char* name_of(comm::detail::OpKind kind);
const char* name_of(comm::DataType type);
const char* name_of(comm::ReduceOp reduce);

}  // namespace muster::worker_page
