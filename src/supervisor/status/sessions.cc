// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/sessions.h"

#include <algorithm>
#include <utility>

namespace muster {

Sessions::Sessions(Loop& loop) : loop_(loop), self_(std::make_shared<Sessions*>(this)) {}

Sessions::~Sessions() {
  *self_ = nullptr;
}

void Sessions::add(std::unique_ptr<StatusSession> session) {
  StatusSession* key = session.get();
  sessions_.emplace(key, std::move(session));
}

void Sessions::hurry() {
  // A session that is over already leaves the map.
  std::vector<StatusSession*> all;
  for (const auto& [session, owner] : sessions_)
    all.push_back(session);
  for (StatusSession* session : all) {
    if (sessions_.contains(session)) session->hurry();
  }
}

size_t Sessions::lasting() const {
  return static_cast<size_t>(
      std::count_if(sessions_.begin(), sessions_.end(),
                    [](const auto& entry) { return entry.second->lasting(); }));
}

void Sessions::end(StatusSession& session) {
  const auto found = sessions_.find(&session);
  if (found == sessions_.end()) return;
  ended_.push_back(std::move(found->second));
  sessions_.erase(found);
  if (ended_.size() > 1) return;
  loop_.post([self = self_] {
    if (*self == nullptr) return;
    std::vector<std::unique_ptr<StatusSession>> ended = std::move((*self)->ended_);
    (*self)->ended_.clear();
  });
}

}  // namespace muster
