// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "loop/loop.h"

namespace muster {

// Who has not been heard for too long, among thousands, at a fixed cost for each word of theirs:
// they stand in the order in which they were last heard. Knows no clock.
class SilenceWatch {
 public:
  struct Heard {
    Clock::time_point when;
    std::string id;
  };
  using Place = std::list<Heard>::iterator;

  explicit SilenceWatch(Milliseconds patience) : patience_(patience) {}

  Place add(std::string id, Clock::time_point now) {
    return list_.insert(list_.end(), {now, std::move(id)});
  }
  void heard(Place place, Clock::time_point now) {
    place->when = now;
    list_.splice(list_.end(), list_, place);
  }
  void remove(Place place) { list_.erase(place); }

  // When the next one will have been silent for too long.
  std::optional<Clock::time_point> next() const {
    if (list_.empty()) return std::nullopt;
    return list_.front().when + patience_;
  }

  // Those that have, the longest first. They stay until they are removed.
  std::vector<std::string> silent(Clock::time_point now) const {
    std::vector<std::string> ids;
    for (auto it = list_.begin(); it != list_.end() && now - it->when >= patience_; ++it)
      ids.push_back(it->id);
    return ids;
  }

 private:
  const Milliseconds patience_;
  std::list<Heard> list_;
};

}  // namespace muster
