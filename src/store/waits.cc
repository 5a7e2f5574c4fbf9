// SPDX-License-Identifier: Apache-2.0
#include "store/waits.h"

#include "loop/check.h"

namespace muster {

void Waits::wait(ClientId client, const std::vector<std::string_view>& keys, bool barrier,
                 Clock::time_point now) {
  MUST(!keys.empty());
  cancel(client);
  Waiting& waiting = waiting_[client];
  waiting.since = now;
  waiting.barrier = barrier;
  waiting.places.reserve(keys.size());
  for (std::string_view key : keys) {
    auto queue = queues_.find(key);
    if (queue == queues_.end()) queue = queues_.emplace(key, Queue()).first;
    queue->second.push_back({client, waiting.places.size()});
    waiting.places.push_back({&*queue, std::prev(queue->second.end())});
  }
}

bool Waits::cancel(ClientId client) {
  auto it = waiting_.find(client);
  if (it == waiting_.end()) return false;
  for (const Place& place : it->second.places) {
    place.queue->second.erase(place.at);
    if (place.queue->second.empty()) queues_.erase(queues_.find(place.queue->first));
  }
  waiting_.erase(it);
  return true;
}

// Takes the oldest registration off a queue; true if its client had no other left and woke.
bool Waits::wake_first(Queues::iterator queue, std::vector<ClientId>& woken) {
  const Registration first = queue->second.front();
  auto it = waiting_.find(first.client);
  MUST(it != waiting_.end());
  std::vector<Place>& places = it->second.places;
  places[first.index] = places.back();
  places[first.index].at->index = first.index;
  places.pop_back();
  queue->second.pop_front();
  if (!places.empty()) return false;
  waiting_.erase(it);
  woken.push_back(first.client);
  return true;
}

void Waits::wake_all(std::string_view key, std::vector<ClientId>& woken) {
  if (queues_.empty()) return;
  auto queue = queues_.find(key);
  if (queue == queues_.end()) return;
  while (!queue->second.empty())
    wake_first(queue, woken);
  queues_.erase(queue);
}

void Waits::wake_one(std::string_view key, std::vector<ClientId>& woken) {
  auto queue = queues_.find(key);
  if (queue == queues_.end()) return;
  while (!queue->second.empty() && !wake_first(queue, woken)) {
  }
  if (queue->second.empty()) queues_.erase(queue);
}

std::string Waits::words(ClientId client) const {
  auto it = waiting_.find(client);
  if (it == waiting_.end()) return "";
  const std::vector<Place>& places = it->second.places;
  std::string text = places.front().queue->first;
  if (places.size() > 1) text += " and " + std::to_string(places.size() - 1) + " more";
  return text;
}

void Waits::for_each(const std::function<void(const Waiter&)>& visit) const {
  for (const auto& [client, waiting] : waiting_) {
    Waiter waiter{client, waiting.since, waiting.barrier, {}};
    for (const Place& place : waiting.places)
      waiter.keys.push_back(place.queue->first);
    visit(waiter);
  }
}

void Waits::clear() {
  queues_ = {};
  waiting_ = {};
}

}  // namespace muster
