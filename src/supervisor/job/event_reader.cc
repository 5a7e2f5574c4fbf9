// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/event_reader.h"

#include <utility>

#include "supervisor/job/event_json.h"

namespace muster {

std::vector<Event> EventReader::take(std::string_view block) {
  std::vector<Event> events;
  while (!block.empty()) {
    size_t end = block.find('\n');
    add(block.substr(0, end));
    if (end == std::string_view::npos) break;
    finish_line(events);
    block.remove_prefix(end + 1);
  }
  return events;
}

void EventReader::add(std::string_view part) {
  if (line_.size() + part.size() > kMaxLineBytes) too_long_ = true;
  if (!too_long_) line_ += part;
}

void EventReader::finish_line(std::vector<Event>& events) {
  if (too_long_ || !line_.empty()) {
    ++lines_;
    Result<Event> event = too_long_ ? Error{0, "too long"} : event_from_json(line_);
    if (event) {
      events.push_back(std::move(*event));
    } else if (event.error().code == kUnknownEvent) {
      ++unknown_;
    } else {
      ++damaged_;
    }
  }
  line_.clear();
  too_long_ = false;
}

}  // namespace muster
