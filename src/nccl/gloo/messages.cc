// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/messages.h"

#include <algorithm>
#include <cstring>

#include "nccl/gloo/tags.h"

namespace muster::comm::detail {

void Messages::begin(std::span<const Operation> operations) {
  for (const Operation& operation : operations) {
    if (operation.point_to_point() && operation.root_or_peer != mesh_.rank()) begin_one(operation);
  }
}

void Messages::begin_one(const Operation& operation) {
  const bool sends = operation.kind == OpKind::kSend;
  const size_t bytes = sends ? operation.in.bytes() : operation.out.bytes();
  const void* data = sends ? operation.in.data : operation.out.data;
  const uint64_t slot =
      message_slot(SlotKind::kMessage, static_cast<uint32_t>(operation.tag), bytes);
  auto& buffer = buffers_.emplace_back(mesh_.transport().make_buffer(data, bytes, deadline_));
  if (sends) {
    buffer->send(operation.root_or_peer, slot, 0, bytes);
  } else {
    buffer->recv(operation.root_or_peer, slot, 0, bytes);
  }
}

bool Messages::finish(Deadline until) {
  while (!buffers_.empty()) {
    if (!buffers_.back()->finish(until)) return false;
    buffers_.pop_back();
  }
  return true;
}

Result<void> exchange_with_self(std::span<const Operation> operations, int rank) {
  const Error alone{ErrorCode::kInvalidArgument,
                    "a message to itself needs its send and its receive, of one tag and size, in "
                    "one batch"};
  std::vector<const Operation*> receives;
  for (const Operation& operation : operations) {
    if (operation.kind == OpKind::kRecv && operation.root_or_peer == rank) {
      receives.push_back(&operation);
    }
  }
  for (const Operation& send : operations) {
    if (send.kind != OpKind::kSend || send.root_or_peer != rank) continue;
    const auto match = std::ranges::find_if(receives, [&](const Operation* receive) {
      return receive->tag == send.tag && receive->out.bytes() == send.in.bytes();
    });
    if (match == receives.end()) return alone;
    if (send.in.count > 0) std::memmove((*match)->out.data, send.in.data, send.in.bytes());
    receives.erase(match);
  }
  if (!receives.empty()) return alone;
  return {};
}

}  // namespace muster::comm::detail
