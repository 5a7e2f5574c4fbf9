// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/messages.h"

#include "nccl/gloo/tags.h"

namespace muster::comm::detail {

void Messages::begin(std::span<const Operation> operations) {
  for (const Operation& operation : operations) {
    if (operation.point_to_point()) begin_one(operation);
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

}  // namespace muster::comm::detail
