// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "supervisor/rendezvous/messages.h"

namespace muster {

// Most events of this node's workers that wait to be sent to the coordinator.
inline constexpr size_t kMaxQueuedEvents = 4096;

// The events that a node has for those who watch the job at the coordinator. When it does not read,
// the oldest are dropped, counted, and the count is told in their place. Owned by RemoteLink.
class EventQueue {
 public:
  explicit EventQueue(std::string host) : host_(std::move(host)) {}

  // Kinds that are of no use on another node are left out. False if nothing was queued.
  bool add(const Event& event);

  bool empty() const { return events_.empty(); }

  // At most kMaxEventsPerMessage of the oldest, all of one attempt.
  message::Events take();

 private:
  struct Queued {
    int attempt;
    EventBody body;
  };
  const std::string host_;
  std::deque<Queued> events_;
  int attempt_ = 0;  // of the last event that has one
  int64_t dropped_ = 0;
};

}  // namespace muster
