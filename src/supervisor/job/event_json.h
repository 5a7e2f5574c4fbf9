// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "loop/result.h"
#include "supervisor/job/event.h"

namespace muster {

// One event as one line of JSON without its newline, as docs/events.md describes it. Bytes that are
// not UTF-8 are replaced.
std::string event_to_json(const Event& event);

// The reverse. Keys that are missing keep their defaults and unknown ones are ignored, so that
// files of older and newer versions can be read; a value of the wrong type, or an event of unknown
// name (an error with the code kUnknownEvent), is an error.
inline constexpr int kUnknownEvent = -1;
Result<Event> event_from_json(std::string_view line);

// Makes `body` the event of that name, its fields at their defaults; false if there is none.
bool make_event(std::string_view name, EventBody& body);

// The stable name of an event and of an outcome in JSON.
std::string_view event_name(const EventBody& body);
std::string_view outcome_name(Outcome outcome);

}  // namespace muster
