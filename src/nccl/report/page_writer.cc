// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/page_writer.h"

#include <pthread.h>

#include <array>
#include <mutex>

#include "nccl/report/own_page.h"

// How a ring entry passes from one operation to the next while another thread may still be ending
// the first: its version goes up by two for each begin() and for each end(), and is odd in between.
// end() knows the version that begin() left and takes the entry only from exactly that one, so an
// operation that ends late (more than a ring later) finds another version and leaves it alone.
// Versions never go back, also not when a block is given to another communicator. Those that a dead
// owner of the page left odd have been made even when we took it, so an odd one is always held by
// somebody who will let it go.
namespace muster::comm::detail {
namespace {

using worker_page::CommunicatorBlock;
using worker_page::OpState;
using worker_page::Page;
using worker_page::RingEntry;

// Which blocks of the page are whose. Only opening and closing a communicator come here.
struct Blocks {
  std::mutex mutex;
  std::array<uint64_t, worker_page::kMaxCommunicators> closed{};  // when, in order; 0: never used
  std::array<bool, worker_page::kMaxCommunicators> open{};
  uint64_t closings = 0;

  // The one that was never used, else the one closed first; nullptr: all are open.
  CommunicatorBlock* take() {
    const std::lock_guard lock(mutex);
    size_t best = closed.size();
    for (size_t i = 0; i < closed.size(); i++) {
      if (!open[i] && (best == closed.size() || closed[i] < closed[best])) best = i;
    }
    if (best == closed.size()) return nullptr;
    open[best] = true;
    return &own_page().communicators[best];
  }

  void give_back(const CommunicatorBlock* block) {
    const std::lock_guard lock(mutex);
    const auto index = static_cast<size_t>(block - own_page().communicators.data());
    open[index] = false;
    closed[index] = ++closings;
  }
};

// Never destroyed: communicators may end after main has.
Blocks& blocks() {
  static auto* const instance = [] {
    auto* made = new Blocks;
    // A fork must not find it locked: the child's own communicators need it.
    pthread_atfork([] { blocks().mutex.lock(); }, [] { blocks().mutex.unlock(); },
                   [] { blocks().mutex.unlock(); });
    return made;
  }();
  return *instance;
}

void lock_entry(RingEntry& entry) {
  // Only end() of an operation one whole ring ago, or of the block's communicator before, can hold
  // it, for a few stores.
  while (!begin_write(entry.version)) {
  }
}

void describe(CommunicatorBlock& block, const BlockPlan& plan) {
  put(block.closed, 0U);
  put(block.id, plan.id);
  put(block.rank, int32_t{plan.rank});
  put(block.size, int32_t{plan.size});
  put(block.backend, static_cast<uint8_t>(plan.backend));
  write_text(block.name, sizeof(block.name), plan.name);
  const size_t members = plan.world_ranks.size();
  const bool listed = members <= worker_page::kMaxMembers;
  put(block.members, listed ? static_cast<uint32_t>(members) : 0U);
  for (size_t i = 0; listed && i < members; i++) {
    put(block.member[i], int32_t{plan.world_ranks[i]});
  }
  put(block.entries, uint64_t{0});
  put(block.collectives, uint64_t{0});
  put(block.messages, uint64_t{0});
}

void open_block(CommunicatorBlock& block, const BlockPlan& plan) {
  block.version.fetch_add(1, std::memory_order_acquire);  // ours alone since take()
  describe(block, plan);
  for (RingEntry& entry : block.ring) {
    lock_entry(entry);
    put(entry.state, static_cast<uint8_t>(OpState::kNone));
    end_write(entry.version);
  }
  put(block.used, 1U);
  end_write(block.version);
}

// What stands for the operation's size: what it puts in, or takes out where it puts nothing in.
const ConstBuffer size_of_operation(const Operation& operation) {
  if (operation.kind == OpKind::kSend || operation.in.count > 0) return operation.in;
  return operation.out;
}

}  // namespace

PageBlock::PageBlock(const BlockPlan& plan) : block_(blocks().take()) {
  if (block_ == nullptr) {
    private_ = std::make_unique<CommunicatorBlock>();
    block_ = private_.get();
  }
  open_block(*block_, plan);
}

PageBlock::~PageBlock() {
  close();
}

PageBlock::Slot PageBlock::begin(const Operation& operation) {
  const ConstBuffer size = size_of_operation(operation);
  const bool message = operation.point_to_point();
  const uint64_t sequence = message ? ++messages_ : ++collectives_;
  RingEntry& entry = block_->ring[entries_ % worker_page::kRingSize];
  lock_entry(entry);
  put(entry.sequence, sequence);
  put(entry.count, uint64_t{size.count});
  put(entry.start_ns, monotonic_ns());
  put(entry.end_ns, int64_t{0});
  put(entry.root_or_peer, int32_t{operation.root_or_peer});
  put(entry.tag, int32_t{operation.tag});
  put(entry.kind, static_cast<uint8_t>(operation.kind));
  put(entry.type, static_cast<uint8_t>(size.type));
  put(entry.reduce, static_cast<uint8_t>(operation.reduce));
  put(entry.state, static_cast<uint8_t>(OpState::kRunning));
  end_write(entry.version);
  const Slot slot{entries_, entry.version.load(std::memory_order_relaxed), sequence};
  put(message ? block_->messages : block_->collectives, sequence);
  put(block_->entries, ++entries_);
  return slot;
}

void PageBlock::end(const Slot& slot, OpState state) {
  RingEntry& entry = block_->ring[slot.entry % worker_page::kRingSize];
  uint64_t version = slot.version;
  if (version == 0 ||
      !entry.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire)) {
    return;
  }
  put(entry.end_ns, monotonic_ns());
  put(entry.state, static_cast<uint8_t>(state));
  end_write(entry.version);
}

void PageBlock::close() {
  if (!open_.exchange(false)) return;
  put(block_->closed, 1U);
  if (private_ == nullptr) blocks().give_back(block_);
}

}  // namespace muster::comm::detail
