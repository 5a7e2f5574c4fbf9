// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nccl/report/worker_page_reader.h"

namespace muster {

// What is known of one worker's communication, small enough to travel between nodes: of each
// communicator who is in it and its operations that matter. Made from the worker's page, with ages
// in place of times, because hosts share no clock.

// Ranks of the world that lie evenly: first, first + step, ...
struct RankRun {
  int first = 0;
  int step = 1;
  int count = 1;
};
inline constexpr size_t kMaxRankRuns = 32;  // of a communicator; others are not listed

struct RankCall {
  uint64_t sequence = 0;
  comm::detail::OpKind kind = comm::detail::OpKind::kBarrier;
  comm::DataType type = comm::DataType::kUint8;
  comm::ReduceOp reduce = comm::ReduceOp::kSum;
  worker_page::OpState state = worker_page::OpState::kRunning;
  uint64_t count = 0;
  int root_or_peer = 0;  // a rank of the communicator
  int tag = 0;
  int64_t age_us = 0;    // since it was entered
  int64_t took_us = -1;  // until it ended; negative: it has not

  bool message() const {
    return kind == comm::detail::OpKind::kSend || kind == comm::detail::OpKind::kRecv;
  }
  bool done() const { return state == worker_page::OpState::kDone; }
  bool failed() const { return state == worker_page::OpState::kFailed; }
};
inline constexpr size_t kMaxOpenCalls = 6;  // kept of a communicator: the oldest, and the newest
inline constexpr size_t kMaxDoneCalls = 6;  // and the last of those that ended well

struct RankCommunicator {
  uint64_t id = 0;
  int rank = 0;
  int size = 1;
  bool closed = false;
  std::string name;
  std::vector<RankRun> members;  // by rank; empty: not listed
  uint64_t collectives = 0;      // sequence of the last one that was entered
  uint64_t messages = 0;
  std::vector<RankCall> calls;  // in the order in which they were entered
};

// kStopped: by muster; kDied: by itself, and not well.
enum class RankEnd : uint8_t { kRunning = 0, kFinished = 1, kDied = 2, kStopped = 3 };

struct RankOperations {
  std::vector<RankCommunicator> communicators;
};
inline constexpr size_t kMaxRankCommunicators = worker_page::kMaxCommunicators;

// `now_ns`: the page's clock when it was read.
RankOperations operations_of(const worker_page::PageContent& page, int64_t now_ns);

// Both null if there is none.
struct LatestCall {
  const RankCall* call = nullptr;
  const RankCommunicator* communicator = nullptr;
};
// The last to end; of those that ended at once the one that was entered last.
LatestCall last_ended(const RankOperations& operations);

// The rank of the world that is `rank` in the communicator, -1 if that is not listed.
int member_at(const RankCommunicator& communicator, int rank);

// Empty if there would be too many.
std::vector<RankRun> rank_runs(const std::vector<int32_t>& ranks);

}  // namespace muster
