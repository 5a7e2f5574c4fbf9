// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/job/event.h"

namespace muster {

// Takes the text of an events.jsonl piece by piece, as it is read or as it grows, and gives its
// events. What is damaged is counted, never fatal.
class EventReader {
 public:
  static constexpr size_t kMaxLineBytes = 4 << 20;  // longer lines are damaged ones

  // The events of the lines that end in `block`.
  std::vector<Event> take(std::string_view block);

  int64_t lines() const { return lines_; }      // that ended so far
  int64_t damaged() const { return damaged_; }  // of them: nobody's events
  int64_t unknown() const { return unknown_; }  // whole, but of a newer version
  bool inside_line() const { return !line_.empty() || too_long_; }

 private:
  void add(std::string_view part);
  void finish_line(std::vector<Event>& events);

  std::string line_;
  bool too_long_ = false;
  int64_t lines_ = 0;
  int64_t damaged_ = 0;
  int64_t unknown_ = 0;
};

}  // namespace muster
