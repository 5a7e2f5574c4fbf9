// SPDX-License-Identifier: Apache-2.0
#include "supervisor/live_source.h"

#include <utility>

#include "store/server.h"

namespace muster {

void LiveSource::observe(const Event& event) {
  next_seq_ = event.seq + 1;
  recent_.push_back(event);
  if (recent_.size() > kRecentEvents) recent_.pop_front();
  if (observer_) observer_(event);
}

void LiveSource::set_observer(std::function<void(const Event&)> observer) {
  observer_ = std::move(observer);
}

std::vector<StoreWaiter> LiveSource::store_waiters() const {
  const StoreServer* store = parts_.link.store();
  return store ? store->waiters() : std::vector<StoreWaiter>();
}

std::optional<StoreCounters> LiveSource::store_counters() const {
  const StoreServer* store = parts_.link.store();
  return store ? std::optional(store->counters()) : std::nullopt;
}

std::vector<RankSample> LiveSource::samples() {
  return {};
}

bool LiveSource::forward(int, int, std::unique_ptr<HttpExchange>&) {
  return false;
}

std::string LiveSource::restart(const std::string&) {
  return "the job cannot be restarted";
}

std::string LiveSource::stop(const std::string& who, bool kill) {
  return parts_.job.request_stop(who, kill);
}

}  // namespace muster
