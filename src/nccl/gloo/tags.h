// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nccl/core/operation.h"

// What tells Gloo's messages apart. A message that is longer than the buffer that waits for it ends
// the whole process: the transport's own thread throws, and nobody catches it. So what both sides
// must agree on is part of each message's name: calls that differ never meet, and their deadlines
// find them.
namespace muster::comm::detail {

// For Gloo's own collectives: kind, type, sizes, reduction and root. The same on all ranks.
uint32_t collective_tag(const Operation& operation);

// For messages of our own, apart from Gloo's, which begin with 1 to 8. `tag` is the caller's.
enum class SlotKind : uint8_t { kMessage = 0x40, kReduceScatter, kGatherParts, kAllToAll };
uint64_t message_slot(SlotKind kind, uint32_t tag, size_t bytes);

}  // namespace muster::comm::detail
