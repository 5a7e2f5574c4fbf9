// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "loop/loop.h"

namespace muster {

// An answer that takes more than one turn of the loop: a stream, a search, a page that is read in
// the pool. It owns its exchange and whatever works for it; dropping it stops all of that.
class StatusSession {
 public:
  virtual ~StatusSession() = default;

  // The server will go: whoever waits for more to happen sends what there is.
  virtual void hurry() {}

  // Whether it goes on for as long as its client likes.
  virtual bool lasting() const { return false; }
};

// Owns the sessions of a status server.
class Sessions {
 public:
  explicit Sessions(Loop& loop);
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  void add(std::unique_ptr<StatusSession> session);

  // The session is over. It is dropped on the next turn of the loop, so that it may say this from
  // any callback of its own; more than once is the same.
  void end(StatusSession& session);

  void hurry();

  size_t lasting() const;
  template <typename Kind>
  size_t count() const {
    return static_cast<size_t>(
        std::count_if(sessions_.begin(), sessions_.end(), [](const auto& entry) {
          return dynamic_cast<const Kind*>(entry.second.get()) != nullptr;
        }));
  }
  size_t size() const { return sessions_.size(); }

 private:
  Loop& loop_;
  std::unordered_map<StatusSession*, std::unique_ptr<StatusSession>> sessions_;
  std::vector<std::unique_ptr<StatusSession>> ended_;
  std::shared_ptr<Sessions*> self_;  // null inside once this is gone
};

}  // namespace muster
