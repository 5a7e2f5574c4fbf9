// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/messages.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/json_fields.h"
#include "supervisor/rendezvous/message_fields.h"

namespace muster {

namespace {

// Not the ordered kind: a hostile object with many keys must not cost their square.
using Json = nlohmann::json;

// Characters of one text. With the limits below even the largest outcome or verdict fits into
// kMaxFrame, and the largest join into kMaxHandshakeFrame.
constexpr size_t kMaxText = 1024;
constexpr size_t kMaxEventText = 256;
constexpr size_t kMaxFactText = 256;
constexpr size_t kMaxLines = 64;         // of an excerpt, of a list of hosts
constexpr size_t kMaxOthersExcerpt = 4;  // lines that another cause than the root keeps
constexpr int kMaxWorkersPerNode = 65536;
constexpr int kMaxRank = 1 << 30;
constexpr int64_t kMaxTimeUs = int64_t{1} << 60;  // sums of a few stay in range
constexpr size_t kMaxSecret = 256;                // a nonce, a proof
constexpr int kMaxNesting = 8;                    // ours have 4
constexpr int kMaxHeartbeatMs = 3'600'000;
constexpr int kMaxHeartbeatMisses = 10'000;

// The kind byte of a frame.
enum AgentKind : uint8_t {
  kHello = 1,
  kJoin = 2,
  kHeartbeat = 3,
  kFailed = 4,
  kSettled = 5,
  kEvents = 6,
  kStopRequest = 7,
  kLeave = 8,
  kGoodbye = 9,
};
enum HostKind : uint8_t {
  kChallenge = 65,
  kRefuse = 66,
  kWelcome = 67,
  kEcho = 68,
  kAssign = 69,
  kStop = 70,
  kVerdict = 71,
  kEnd = 72,
  kAwaited = 73,
};

// In the order of the variants.
constexpr uint8_t kAgentKinds[] = {kHello,  kJoin,        kHeartbeat, kFailed, kSettled,
                                   kEvents, kStopRequest, kLeave,     kGoodbye};
constexpr uint8_t kHostKinds[] = {kChallenge, kRefuse,  kWelcome, kEcho,   kAssign,
                                  kStop,      kVerdict, kEnd,     kAwaited};
constexpr std::string_view kAgentNames[] = {"hello",        "join",    "heartbeat",
                                            "failed",       "settled", "events",
                                            "stop_request", "leave",   "goodbye"};
constexpr std::string_view kHostNames[] = {"challenge",      "refuse", "welcome",
                                           "heartbeat_echo", "assign", "stop",
                                           "verdict",        "end",    "awaited"};
static_assert(std::size(kAgentKinds) == std::variant_size_v<AgentMessage>);
static_assert(std::size(kHostKinds) == std::variant_size_v<HostMessage>);
static_assert(std::size(kAgentNames) == std::variant_size_v<AgentMessage>);
static_assert(std::size(kHostNames) == std::variant_size_v<HostMessage>);

// Makes every text fit to show and cuts what is too long.
struct Fitter {
  size_t max_text = kMaxText;

  template <typename T>
  void operator()(const char*, T& value) {
    fit(value);
  }
  void derived(const char*, int) {}

  template <typename T>
  void fit(T& value) {
    if constexpr (kIsOptional<T>) {
      if (value) fit(*value);
    } else if constexpr (std::is_class_v<T>) {
      describe(*this, value);
    }
  }
  // Cut before it is cleaned too: cleaning what a hostile peer made up may cost its square.
  void fit(std::string& text) {
    text = cut_line(clean_line(std::string_view(text).substr(0, 4 * max_text)), max_text);
  }
  template <typename T>
  void fit(std::vector<T>& items) {
    if (items.size() > kMaxLines) items.resize(kMaxLines);
    for (T& item : items)
      fit(item);
  }
  void fit(std::vector<event::FailureFound>& failures) {
    if (failures.size() > kMaxOtherCauses) failures.resize(kMaxOtherCauses);
    for (event::FailureFound& failure : failures) {
      std::vector<std::string>& excerpt = failure.excerpt;
      if (excerpt.size() > kMaxOthersExcerpt)  // the end says most
        excerpt.erase(excerpt.begin(), excerpt.end() - kMaxOthersExcerpt);
      fit<event::FailureFound>(failure);
    }
  }
  void fit(std::vector<event::VictimGroup>& groups) {
    if (groups.size() > kMaxVictimGroups) groups.resize(kMaxVictimGroups);
    for (event::VictimGroup& group : groups)
      fit<event::VictimGroup>(group);
  }
};

// Only these are of use at the coordinator.
bool travels(const EventBody& body) {
  return std::holds_alternative<event::WorkerSpawned>(body) ||
         std::holds_alternative<event::SpawnFailed>(body) ||
         std::holds_alternative<event::FirstOutput>(body) ||
         std::holds_alternative<event::WorkerExited>(body) ||
         std::holds_alternative<event::SignalSent>(body) ||
         std::holds_alternative<event::Trouble>(body);
}

template <typename T>
void fit(T& message) {
  Fitter().fit(message);
}
void fit(message::Hello&) {}  // compared, and cleaned by whoever shows it
void fit(message::Challenge&) {}
void fit(message::Heartbeat&) {}
void fit(message::HeartbeatEcho&) {}
void fit(message::Join& join) {
  NodeFacts& facts = join.facts;
  std::string log_dir = std::move(facts.log_dir);
  Fitter().fit(log_dir);
  Fitter{kMaxFactText}.fit(facts);
  facts.log_dir = std::move(log_dir);
}
void fit(message::Events& message) {
  std::erase_if(message.events, [](const EventBody& body) { return !travels(body); });
  if (message.events.size() > kMaxEventsPerMessage) message.events.resize(kMaxEventsPerMessage);
  for (EventBody& body : message.events)
    std::visit([](auto& event) { Fitter{kMaxEventText}.fit(event); }, body);
}

// What is out of range, nullptr if nothing is.
bool within(int64_t value, int64_t low, int64_t high) {
  return low <= value && value <= high;
}

template <typename T>
const char* find_wrong(const T&) {
  return nullptr;
}
const char* find_wrong(const message::Hello& m) {
  if (m.run_id.empty() || m.run_id.size() > kMaxRunId) return "run_id";
  return m.nonce.size() > kMaxSecret ? "nonce" : nullptr;
}
const char* find_wrong(const message::Challenge& m) {
  if (!within(m.time_us, 0, kMaxTimeUs)) return "time_us";
  return m.nonce.size() > kMaxSecret || m.proof.size() > kMaxSecret ? "nonce or proof" : nullptr;
}
const char* find_wrong(const message::Join& m) {
  const NodeFacts& facts = m.facts;
  if (facts.id.empty()) return "id";
  if (!within(facts.workers, 1, kMaxWorkersPerNode)) return "workers";
  if (facts.node_rank && !within(*facts.node_rank, 0, kMaxRank)) return "node_rank";
  if (!within(facts.spare_port, 0, 65535)) return "spare_port";
  if (!within(facts.attempt, -1, kMaxRank)) return "attempt";
  if (!within(facts.last_attempt, -1, kMaxRank)) return "last_attempt";
  if (!within(facts.last_restart_count, 0, kMaxRank)) return "last_restart_count";
  if (!within(m.clock_offset_us, -kMaxTimeUs, kMaxTimeUs)) return "clock_offset_us";
  return m.proof.size() > kMaxSecret ? "proof" : nullptr;
}
const char* find_wrong(const message::Welcome& m) {
  if (!within(m.heartbeat_ms, 1, kMaxHeartbeatMs)) return "heartbeat_ms";
  return within(m.heartbeat_misses, 1, kMaxHeartbeatMisses) ? nullptr : "heartbeat_misses";
}
const char* find_wrong(const Assignment& a) {
  if (!within(a.attempt, 0, kMaxRank) || !within(a.restart_count, 0, kMaxRank)) return "attempt";
  if (!within(a.node, 0, kMaxRank) || !within(a.node_count, a.node + 1, kMaxRank)) return "node";
  if (!within(a.first_rank, 0, kMaxRank) || !within(a.world_size, a.first_rank + 1, kMaxRank))
    return "first_rank";
  if (!within(a.role_first_rank, 0, kMaxRank) || !within(a.role_world_size, 0, kMaxRank))
    return "role_first_rank";
  return within(a.master_port, 0, 65535) ? nullptr : "master_port";
}
const char* find_wrong(const StopOrder& order) {
  return within(order.signal, 1, 64) ? nullptr : "signal";
}
const char* find_wrong(const event::FailureFound& failure) {
  if (!within(failure.rank, -1, kMaxRank)) return "rank";
  return within(failure.time_us, -kMaxTimeUs, kMaxTimeUs) ? nullptr : "time_us";
}
const char* find_wrong(const FailureNotice& notice) {
  return find_wrong(notice.preliminary);
}
template <typename T>
const char* find_wrong_causes(const T& told) {
  const char* wrong = told.root ? find_wrong(*told.root) : nullptr;
  for (const event::FailureFound& other : told.others)
    wrong = wrong ? wrong : find_wrong(other);
  return wrong;
}
const char* find_wrong(const NodeOutcome& outcome) {
  return find_wrong_causes(outcome);
}
const char* find_wrong(const AttemptVerdict& verdict) {
  if (!within(verdict.restart_count, 0, kMaxRank)) return "restart_count";
  return find_wrong_causes(verdict);
}
const char* find_wrong(const message::StopRequest& request) {
  return within(request.signal.signal, 1, 64) ? nullptr : "signal";
}
const char* find_wrong(const JobEnd& end) {
  return within(end.exit_code, 0, 255) ? nullptr : "exit_code";
}

template <typename T>
std::string body_of(T& message) {
  fit(message);
  Json json = Json::object();
  describe(JsonWriter<Json>{json}, message);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string body_of(message::Heartbeat& message) {
  std::string body;
  append_u64(body, static_cast<uint64_t>(message.sent_us));
  append_u64(body, static_cast<uint64_t>(message.clock_offset_us));
  return body;
}
std::string body_of(message::HeartbeatEcho& message) {
  std::string body;
  append_u64(body, static_cast<uint64_t>(message.sent_us));
  append_u64(body, static_cast<uint64_t>(message.time_us));
  return body;
}
std::string body_of(message::Events& message) {
  fit(message);
  Json list = Json::array();
  for (EventBody& body : message.events) {
    Json& item = list.emplace_back(Json::object());
    item["event"] = event_name(body);
    std::visit([&](auto& event) { describe(JsonWriter<Json>{item}, event); }, body);
  }
  Json json{{"attempt", message.attempt}, {"events", std::move(list)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Walks the text once: what nests deep costs many times its size when it is parsed.
bool nests_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else
        quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxNesting) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

Json parse(std::string_view body) {
  if (nests_deep(body)) return Json(Json::value_t::discarded);
  return Json::parse(body, nullptr, false);
}

// Each returns the wrong key, nullptr if all is well.
template <typename T>
const char* read_body(std::string_view body, T& message) {
  const Json json = parse(body);
  if (!json.is_object()) return "body";
  JsonReader<Json> reader{json};
  describe(reader, message);
  return reader.wrong;
}
const char* read_times(std::string_view body, int64_t& first, int64_t& second, int64_t low) {
  if (body.size() < 16) return "size";  // later versions may append
  first = static_cast<int64_t>(read_u64(body.data()));
  second = static_cast<int64_t>(read_u64(body.data() + 8));
  return within(first, 0, kMaxTimeUs) && within(second, low, kMaxTimeUs) ? nullptr : "time";
}
const char* read_body(std::string_view body, message::Heartbeat& message) {
  return read_times(body, message.sent_us, message.clock_offset_us, -kMaxTimeUs);
}
const char* read_body(std::string_view body, message::HeartbeatEcho& message) {
  return read_times(body, message.sent_us, message.time_us, 0);
}
const char* read_body(std::string_view body, message::Events& message) {
  const Json json = parse(body);
  if (!json.is_object()) return "body";
  JsonReader<Json> reader{json};
  reader("attempt", message.attempt);
  const auto list = json.find("events");
  if (list == json.end() || !list->is_array() || list->size() > kMaxEventsPerMessage)
    return "events";
  for (const Json& item : *list) {
    std::string name;
    EventBody event;
    if (!item.is_object()) return "events";
    JsonReader<Json> event_reader{item};
    event_reader("event", name);
    if (!make_event(name, event)) continue;  // of a later version
    std::visit([&](auto& e) { describe(event_reader, e); }, event);
    if (event_reader.wrong) return event_reader.wrong;
    message.events.push_back(std::move(event));
  }
  return reader.wrong;
}

template <typename Message>
std::string encode_any(Message& message, const uint8_t* kinds) {
  std::string out;
  append_frame(out, kinds[message.index()],
               std::visit([](auto& m) { return body_of(m); }, message));
  return out;
}

template <typename Message, size_t I = 0>
bool make_kind(uint8_t kind, const uint8_t* kinds, Message& message) {
  if constexpr (I < std::variant_size_v<Message>) {
    if (kinds[I] != kind) return make_kind<Message, I + 1>(kind, kinds, message);
    message.template emplace<I>();
    return true;
  } else {
    return false;
  }
}

template <typename Message>
Result<Message> decode_any(const Frame& frame, const uint8_t* kinds) {
  Message message;
  if (!make_kind(frame.kind, kinds, message))
    return Error{0, "a message of unknown kind " + std::to_string(frame.kind)};
  const char* wrong = std::visit(
      [&](auto& m) {
        const char* found = read_body(frame.body, m);
        if (!found) found = find_wrong(m);
        if (!found) fit(m);
        return found;
      },
      message);
  if (wrong) return Error{0, std::string(message_name(message)) + ": bad " + wrong};
  return message;
}

}  // namespace

std::string encode(AgentMessage message) {
  return encode_any(message, kAgentKinds);
}
std::string encode(HostMessage message) {
  return encode_any(message, kHostKinds);
}

Result<AgentMessage> decode_agent_message(const Frame& frame) {
  return decode_any<AgentMessage>(frame, kAgentKinds);
}
Result<HostMessage> decode_host_message(const Frame& frame) {
  return decode_any<HostMessage>(frame, kHostKinds);
}

std::string_view message_name(const AgentMessage& message) {
  return kAgentNames[message.index()];
}
std::string_view message_name(const HostMessage& message) {
  return kHostNames[message.index()];
}

}  // namespace muster
