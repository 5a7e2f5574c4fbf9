// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/event_queue.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace muster {

namespace {

template <typename T, typename... Kinds>
constexpr bool kIsOneOf = (std::is_same_v<T, Kinds> || ...);

// What the coordinator does not know anyway, or decides itself.
bool concerns_others(const EventBody& body) {
  return std::visit(
      [](const auto& e) {
        using T = std::decay_t<decltype(e)>;
        return kIsOneOf<T, event::WorkerSpawned, event::SpawnFailed, event::FirstOutput,
                        event::WorkerExited, event::SignalSent, event::LeftoverFound,
                        event::EvidenceSaved, event::Trouble>;
      },
      body);
}

std::optional<int> attempt_of(const EventBody& body) {
  return std::visit(
      [](const auto& e) -> std::optional<int> {
        if constexpr (requires { e.attempt; }) {
          return e.attempt;
        } else {
          return std::nullopt;
        }
      },
      body);
}

}  // namespace

bool EventQueue::add(const Event& event) {
  if (!concerns_others(event.body)) return false;
  attempt_ = attempt_of(event.body).value_or(attempt_);
  events_.push_back({attempt_, event.body});
  if (auto* trouble = std::get_if<event::Trouble>(&events_.back().body)) {
    trouble->message = host_ + ": " + trouble->message;
  }
  if (events_.size() > kMaxQueuedEvents) {
    events_.pop_front();
    ++dropped_;
  }
  return true;
}

message::Events EventQueue::take() {
  message::Events batch;
  if (events_.empty()) return batch;
  batch.attempt = events_.front().attempt;
  if (dropped_ > 0) {
    batch.events.push_back(event::Trouble{
        "events", std::to_string(dropped_) + " events of " + host_ +
                      " are missing here: they came faster than the coordinator read them"});
    dropped_ = 0;
  }
  while (!events_.empty() && events_.front().attempt == batch.attempt &&
         batch.events.size() < kMaxEventsPerMessage) {
    batch.events.push_back(std::move(events_.front().body));
    events_.pop_front();
  }
  return batch;
}

}  // namespace muster
