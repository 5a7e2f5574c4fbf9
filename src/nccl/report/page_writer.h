// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/communicator.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "nccl/core/operation.h"
#include "nccl/report/worker_page.h"

namespace muster::comm::detail {

struct BlockPlan {
  uint64_t id = 0;  // the same on all members, of no other communicator of the attempt
  std::string_view name{};
  int rank = 0;
  int size = 1;
  std::span<const int> world_ranks{};  // by rank
  Backend backend = Backend::kGloo;
};

// One communicator's block in the worker's page: who is in it and its last operations, for the
// launcher to read after a death or while it hangs. It always works: without a launcher, or when
// all blocks are in use by open communicators, the block is private memory.
//
// begin() one at a time; end() from any thread, also at the same time, once for each slot.
class PageBlock {
 public:
  // Of an operation that was begun.
  struct Slot {
    uint64_t entry = 0;
    uint64_t version = 0;
    uint64_t sequence = 0;  // 1, 2, ...: collectives and point to point are counted apart
  };

  explicit PageBlock(const BlockPlan& plan);
  ~PageBlock();  // closes
  PageBlock(const PageBlock&) = delete;
  PageBlock& operator=(const PageBlock&) = delete;

  // The operation is entered now.
  Slot begin(const Operation& operation);
  // It has ended now. Does nothing where its entry was given to a later operation.
  void end(const Slot& slot, worker_page::OpState state);
  void end(const Slot& slot, bool well) {
    end(slot, well ? worker_page::OpState::kDone : worker_page::OpState::kFailed);
  }

  // Closed or aborted in order; its block may be used again. Twice does nothing more. end() may
  // still be called.
  void close();

  const worker_page::CommunicatorBlock& block() const { return *block_; }

 private:
  worker_page::CommunicatorBlock* block_;  // of the process' page, which stays, or private_
  std::unique_ptr<worker_page::CommunicatorBlock> private_;
  std::atomic<bool> open_{true};
  uint64_t entries_ = 0;
  uint64_t collectives_ = 0;
  uint64_t messages_ = 0;
};

}  // namespace muster::comm::detail
