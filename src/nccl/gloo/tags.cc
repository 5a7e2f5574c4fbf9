// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/tags.h"

namespace muster::comm::detail {
namespace {

// FNV-1a over 64-bit words: good enough to tell calls apart, and cheap.
class Hash {
 public:
  void add(uint64_t value) {
    state_ = (state_ ^ value) * 0x100000001b3ULL;
    state_ ^= state_ >> 29;
  }
  uint32_t value() const { return static_cast<uint32_t>(state_ ^ (state_ >> 32)); }

 private:
  uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace

uint32_t collective_tag(const Operation& operation) {
  const OpKind kind = operation.kind;
  Hash hash;
  hash.add(static_cast<uint64_t>(kind));
  if (kind == OpKind::kBarrier) return hash.value();
  if (kind == OpKind::kAllToAll) {
    // Sizes are each pair's own, and part of the messages' slots.
    hash.add(static_cast<uint64_t>(operation.in.type));
    return hash.value();
  }
  hash.add(static_cast<uint64_t>(operation.reduce));
  hash.add(static_cast<uint64_t>(operation.root_or_peer));
  if (operation.counts.empty()) {
    // The side that is the same on all ranks: what each puts in, except where only the root does.
    const bool takes = kind == OpKind::kScatter || kind == OpKind::kBroadcast ||
                       kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter;
    hash.add(takes ? operation.out.count : operation.in.count);
    hash.add(static_cast<uint64_t>(takes ? operation.out.type : operation.in.type));
  } else {
    hash.add(static_cast<uint64_t>(operation.in.type));
    for (const size_t count : operation.counts)
      hash.add(count);
  }
  return hash.value();
}

uint64_t message_slot(SlotKind kind, uint32_t tag, size_t bytes) {
  // Sizes that differ by less than 16 MB are always told apart.
  constexpr size_t kPrime = 16777213;
  return static_cast<uint64_t>(kind) << 56 | static_cast<uint64_t>(bytes % kPrime) << 32 | tag;
}

}  // namespace muster::comm::detail
