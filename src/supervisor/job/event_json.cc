// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/event_json.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/duration_text.h"

// Each event names its fields once, in describe(); Writer and Reader both walk that description.

namespace muster {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxMonoUs = int64_t{50} * 365 * 24 * 3600 * 1'000'000;

template <typename E>
struct Name {
  E value;
  std::string_view text;
};

constexpr std::array kStreams = {Name<Stream>{Stream::kStdout, "stdout"},
                                 Name<Stream>{Stream::kStderr, "stderr"}};
constexpr std::array kOutcomes = {Name<Outcome>{Outcome::kSucceeded, "succeeded"},
                                  Name<Outcome>{Outcome::kFailed, "failed"},
                                  Name<Outcome>{Outcome::kStopped, "stopped"}};
constexpr std::array kReasons = {
    Name<StopReason>{StopReason::kNone, "none"},
    Name<StopReason>{StopReason::kFailure, "failure"},
    Name<StopReason>{StopReason::kRestart, "restart"},
    Name<StopReason>{StopReason::kSignal, "signal"},
    Name<StopReason>{StopReason::kFinished, "finished"},
    Name<StopReason>{StopReason::kGuardLost, "guard_lost"},
    Name<StopReason>{StopReason::kMembership, "membership"},
    Name<StopReason>{StopReason::kCoordinatorLost, "coordinator_lost"}};

constexpr const auto& names_of(Stream) {
  return kStreams;
}
constexpr const auto& names_of(Outcome) {
  return kOutcomes;
}
constexpr const auto& names_of(StopReason) {
  return kReasons;
}

template <typename E>
std::string_view name_of(E value) {
  for (const auto& name : names_of(value)) {
    if (name.value == value) return name.text;
  }
  return "unknown";
}

constexpr std::string_view kNames[] = {
    "job_started",   "attempt_started",   "worker_spawned",  "spawn_failed", "first_output",
    "worker_exited", "signal_sent",       "signal_received", "stop_ordered", "failure_found",
    "victims_found", "restart_scheduled", "leftover_found",  "node_joined",  "node_lost",
    "nodes_awaited", "trouble",           "job_ended"};
static_assert(std::size(kNames) == std::variant_size_v<EventBody>);

template <typename A>
void describe(A&& a, event::JobStarted& e) {
  a("run_id", e.run_id);
  a("host", e.host);
  a("program", e.program);
  a("command", e.command);
  a("log_dir", e.log_dir);
  a("world_size", e.world_size);
  a("local_world_size", e.local_world_size);
  a("max_restarts", e.max_restarts);
  a("pid", e.pid);
  a("started_by", e.started_by);
}

template <typename A>
void describe(A&& a, event::NodeSpan& e) {
  a("node", e.node);
  a("host", e.host);
  a("first_rank", e.first_rank);
  a("workers", e.workers);
}

template <typename A>
void describe(A&& a, event::AttemptStarted& e) {
  a("attempt", e.attempt);
  a("restart_count", e.restart_count);
  a("node", e.node);
  a("node_count", e.node_count);
  a("world_size", e.world_size);
  a("nodes", e.nodes);
  a("master_addr", e.master_addr);
  a("master_port", e.master_port);
}

template <typename A>
void describe(A&& a, event::WorkerSpawned& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("local_rank", e.local_rank);
  a("pid", e.pid);
}

template <typename A>
void describe(A&& a, event::SpawnFailed& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("local_rank", e.local_rank);
  a("errno", e.code);
  a("message", e.message);
}

template <typename A>
void describe(A&& a, event::FirstOutput& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("stream", e.stream);
}

template <typename A>
void describe(A&& a, event::WorkerExited& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("local_rank", e.local_rank);
  a("pid", e.pid);
  a("wait_status", e.wait_status);
  a("max_rss_kib", e.max_rss_kib);
  // For readers without wait(2)'s macros.
  WaitStatus status = decode_wait_status(e.wait_status);
  a.derived("exit_code", status.exit_code);
  a.derived("signal", status.signal);
}

template <typename A>
void describe(A&& a, event::SignalSent& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("pid", e.pid);
  a("signal", e.signal);
  a("to_group", e.to_group);
  a("reason", e.reason);
}

template <typename A>
void describe(A&& a, event::SignalReceived& e) {
  a("signal", e.signal);
  a("sender_pid", e.sender_pid);
  a("sender_uid", e.sender_uid);
  a("sender", e.sender);
  a("forwarded", e.forwarded);
  a("host", e.host);
}

template <typename A>
void describe(A&& a, event::StopOrdered& e) {
  a("attempt", e.attempt);
  a("signal", e.signal);
  a("reason", e.reason);
  a("why", e.why);
}

template <typename A>
void describe(A&& a, event::FailureFound& e) {
  a("attempt", e.attempt);
  a("rank", e.rank);
  a("local_rank", e.local_rank);
  a("host", e.host);
  a("node", e.node);
  a("pid", e.pid);
  a("kind", e.kind);
  a("signal", e.signal);
  a("exit_code", e.exit_code);
  a("message", e.message);
  a("excerpt", e.excerpt);
  a("excerpt_source", e.excerpt_source);
  a("note", e.note);
  a("can_heal", e.can_heal);
  a("ran_us", e.ran_us);
  a("time_us", e.time_us);
  a("stdout_log", e.stdout_log);
  a("stderr_log", e.stderr_log);
}

template <typename A>
void describe(A&& a, event::VictimGroup& e) {
  a("ranks", e.ranks);
  a("reason", e.reason);
}

template <typename A>
void describe(A&& a, event::VictimsFound& e) {
  a("attempt", e.attempt);
  a("groups", e.groups);
}

template <typename A>
void describe(A&& a, event::RestartScheduled& e) {
  a("next_attempt", e.next_attempt);
  a("used", e.used);
  a("max", e.max);
}

template <typename A>
void describe(A&& a, event::LeftoverFound& e) {
  a("pid", e.pid);
  a("command", e.command);
  a("state", e.state);
  a("wait_channel", e.wait_channel);
  a("ended", e.ended);
  a("fate", e.fate);
}

template <typename A>
void describe(A&& a, event::NodeJoined& e) {
  a("id", e.id);
  a("host", e.host);
  a("address", e.address);
  a("pid", e.pid);
  a("workers", e.workers);
  a("spare", e.spare);
}

template <typename A>
void describe(A&& a, event::NodeLost& e) {
  a("id", e.id);
  a("host", e.host);
  a("node", e.node);
  a("how", e.how);
  a("message", e.message);
}

template <typename A>
void describe(A&& a, event::NodesAwaited& e) {
  a("have", e.have);
  a("min", e.min);
  a("max", e.max);
  a("hosts", e.hosts);
  a("left_ms", e.left_ms);
  a("text", e.text);
}

template <typename A>
void describe(A&& a, event::Trouble& e) {
  a("subject", e.subject);
  a("message", e.message);
}

template <typename A>
void describe(A&& a, event::JobEnded& e) {
  a("outcome", e.outcome);
  a("exit_code", e.exit_code);
  a("why", e.why);
}

// Lists whose items are described themselves.
template <typename T>
concept Described = std::is_same_v<T, event::NodeSpan> || std::is_same_v<T, event::VictimGroup>;

struct Writer {
  Json& json;

  template <typename T>
  void operator()(const char* key, T& value) {
    if constexpr (std::is_enum_v<T>) {
      json[key] = name_of(value);
    } else {
      json[key] = value;
    }
  }
  template <Described T>
  void operator()(const char* key, std::vector<T>& items) {
    Json list = Json::array();
    for (T& item : items)
      describe(Writer{list.emplace_back(Json::object())}, item);
    json[key] = std::move(list);
  }
  void derived(const char* key, int value) { json[key] = value; }
};

struct Reader {
  const Json& json;
  const char* wrong = nullptr;  // the first key whose value has the wrong type

  template <typename T>
  void operator()(const char* key, T& value) {
    auto found = json.find(key);
    if (found != json.end() && !read(*found, value) && !wrong) wrong = key;
  }
  void derived(const char*, int) {}

  static bool read(const Json& from, bool& value) {
    if (!from.is_boolean()) return false;
    value = from.get<bool>();
    return true;
  }
  static bool read(const Json& from, int64_t& value) {
    if (!from.is_number_integer()) return false;
    if (from.is_number_unsigned() &&
        from.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return false;
    }
    value = from.get<int64_t>();
    return true;
  }
  static bool read(const Json& from, int& value) {
    int64_t wide = 0;
    if (!read(from, wide) || wide != static_cast<int>(wide)) return false;
    value = static_cast<int>(wide);
    return true;
  }
  static bool read(const Json& from, std::string& value) {
    if (!from.is_string()) return false;
    value = from.get<std::string>();
    return true;
  }
  static bool read(const Json& from, std::vector<std::string>& value) {
    if (!from.is_array()) return false;
    value.clear();
    for (const Json& item : from) {
      if (!read(item, value.emplace_back())) return false;
    }
    return true;
  }
  template <Described T>
  static bool read(const Json& from, std::vector<T>& value) {
    if (!from.is_array()) return false;
    value.clear();
    for (const Json& item : from) {
      if (!item.is_object()) return false;
      Reader reader{item};
      describe(reader, value.emplace_back());
      if (reader.wrong) return false;
    }
    return true;
  }
  template <typename E>
  requires std::is_enum_v<E>
  static bool read(const Json& from, E& value) {
    if (!from.is_string()) return false;
    for (const auto& name : names_of(value)) {
      if (name.text == from.get_ref<const std::string&>()) return value = name.value, true;
    }
    return false;
  }
};

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

// Makes the alternative whose name is `name`.
template <size_t I = 0>
bool make_body(std::string_view name, EventBody& body) {
  if constexpr (I < std::variant_size_v<EventBody>) {
    if (kNames[I] != name) return make_body<I + 1>(name, body);
    body.emplace<I>();
    return true;
  } else {
    return false;
  }
}

}  // namespace

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
  std::visit([&](auto& e) { describe(Writer{json}, e); }, body);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Event> event_from_json(std::string_view line) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return Error{0, "event: not a JSON object"};
  Event event;
  std::string name, time;
  Reader reader{json};
  reader("seq", event.seq);
  reader("mono_us", event.mono_us);
  reader("time", time);
  reader("event", name);
  if (!time.empty() && !parse_utc(time, event.time)) return Error{0, "event: bad time: " + time};
  if (!make_body(name, event.body)) return Error{0, "event: unknown event: " + name};
  std::visit([&](auto& e) { describe(reader, e); }, event.body);
  if (reader.wrong) return Error{0, name + ": wrong type: " + reader.wrong};
  if (event.seq < 0 || event.mono_us < 0 || event.mono_us > kMaxMonoUs) {
    return Error{0, name + ": number out of range"};
  }
  return event;
}

}  // namespace muster
