// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/event_json.h"

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "supervisor/job/duration_text.h"
#include "supervisor/job/event_fields.h"
#include "supervisor/job/json_fields.h"

namespace muster {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxMonoUs = int64_t{50} * 365 * 24 * 3600 * 1'000'000;

constexpr std::string_view kNames[] = {
    "job_started",       "attempt_started",   "worker_spawned", "spawn_failed",
    "first_output",      "worker_exited",     "signal_sent",    "signal_received",
    "stop_ordered",      "restart_requested", "failure_found",  "victims_found",
    "collectives_found", "stall_found",       "stall_over",     "evidence_saved",
    "restart_scheduled", "restart_denied",    "leftover_found", "node_joined",
    "node_lost",         "nodes_awaited",     "trouble",        "job_ended"};
static_assert(std::size(kNames) == std::variant_size_v<EventBody>);

bool parse_utc(const std::string& text, std::chrono::system_clock::time_point& time) {
  std::tm utc{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  int us = 0, used = 0;
  if (!rest || std::sscanf(rest, ".%6dZ%n", &us, &used) != 1 || us < 0) return false;
  if (used == 0 || rest[used] != '\0') return false;
  // What the clock's nanoseconds can hold, with room for arithmetic.
  if (utc.tm_year < 70 || utc.tm_year > 300) return false;
  time = std::chrono::system_clock::from_time_t(timegm(&utc)) + std::chrono::microseconds(us);
  return true;
}

template <size_t I = 0>
bool make_alternative(std::string_view name, EventBody& body) {
  if constexpr (I < std::variant_size_v<EventBody>) {
    if (kNames[I] != name) return make_alternative<I + 1>(name, body);
    body.emplace<I>();
    return true;
  } else {
    return false;
  }
}

}  // namespace

bool make_event(std::string_view name, EventBody& body) {
  return make_alternative(name, body);
}

std::string_view event_name(const EventBody& body) {
  return kNames[body.index()];
}
std::string_view outcome_name(Outcome outcome) {
  return name_of(outcome);
}

std::string event_to_json(const Event& event) {
  Json json;
  json["seq"] = event.seq;
  json["time"] = utc_text(event.time, 6);
  json["mono_us"] = event.mono_us;
  json["event"] = event_name(event.body);
  EventBody body = event.body;  // describe() serves the reader too, so it takes what can be written
  std::visit([&](auto& e) { describe(JsonWriter<Json>{json}, e); }, body);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Event> event_from_json(std::string_view line) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return Error{0, "event: not a JSON object"};
  Event event;
  std::string name, time;
  JsonReader<Json> reader{json};
  reader("seq", event.seq);
  reader("mono_us", event.mono_us);
  reader("time", time);
  reader("event", name);
  if (!time.empty() && !parse_utc(time, event.time)) return Error{0, "event: bad time: " + time};
  if (!make_event(name, event.body)) {
    // Without a name it is not an event of any version.
    return Error{name.empty() ? 0 : kUnknownEvent, "event: unknown event: " + name};
  }
  std::visit([&](auto& e) { describe(reader, e); }, event.body);
  if (reader.wrong) return Error{0, name + ": wrong type: " + reader.wrong};
  if (event.seq < 0 || event.mono_us < 0 || event.mono_us > kMaxMonoUs) {
    return Error{0, name + ": number out of range"};
  }
  return event;
}

}  // namespace muster
