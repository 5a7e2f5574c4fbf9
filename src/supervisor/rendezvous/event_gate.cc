// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/event_gate.h"

namespace muster {

namespace {

// Beyond those of its workers: trouble with logs, the store's peers.
constexpr int kMaxOtherEvents = 100;

}  // namespace

void EventGate::assigned(const Assignment& assignment) {
  attempt_ = assignment.attempt;
  node_ = assignment.node;
  first_rank_ = assignment.first_rank;
  left_ = int64_t{per_worker_} * workers_ + kMaxOtherEvents;
}

bool EventGate::has(int attempt, int rank) const {
  return attempt == attempt_ && rank >= first_rank_ && rank - first_rank_ < workers_;
}

bool EventGate::may_pass(EventBody& body) const {
  return std::visit(
      [&](auto& event) {
        using T = std::decay_t<decltype(event)>;
        if constexpr (std::is_same_v<T, event::Trouble>) {
          if (!event.message.starts_with(host_ + ": "))
            event.message = host_ + ": " + event.message;
          return true;
        } else if constexpr (std::is_same_v<T, event::LeftoverFound>) {
          event.host = host_;
          return true;
        } else if constexpr (std::is_same_v<T, event::EvidenceSaved>) {
          event.host = host_;
          return event.attempt == attempt_;
        } else if constexpr (std::is_same_v<T, event::WorkerSpawned> ||
                             std::is_same_v<T, event::SpawnFailed> ||
                             std::is_same_v<T, event::FirstOutput> ||
                             std::is_same_v<T, event::WorkerExited> ||
                             std::is_same_v<T, event::SignalSent>) {
          return has(event.attempt, event.rank);
        } else {
          return false;
        }
      },
      body);
}

std::vector<EventBody> EventGate::pass(message::Events message) {
  std::vector<EventBody> passed;
  if (attempt_ < 0) return passed;
  for (EventBody& body : message.events) {
    if (left_ < 0) break;
    if (!may_pass(body)) continue;
    if (left_-- > 0) {
      passed.push_back(std::move(body));
    } else {
      passed.push_back(event::Trouble{
          "rendezvous", host_ + ": sent more events than its workers can have; the rest of this "
                                "attempt's are left out here"});
    }
  }
  return passed;
}

bool EventGate::own(event::FailureFound& failure) const {
  if (failure.rank != -1 && !has(attempt_, failure.rank)) return false;
  failure.attempt = attempt_;
  failure.host = host_;
  failure.node = node_;
  return true;
}

}  // namespace muster
