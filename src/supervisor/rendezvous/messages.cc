// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/messages.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "supervisor/cli/failure_policy.h"
#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/json_fields.h"
#include "supervisor/rendezvous/base64.h"
#include "supervisor/rendezvous/binary_messages.h"
#include "supervisor/rendezvous/forwarded_words.h"
#include "supervisor/rendezvous/message_fields.h"
#include "supervisor/rendezvous/message_ranges.h"
#include "supervisor/rendezvous/operation_codec.h"

namespace muster {

namespace {

// Not the ordered kind: a hostile object with many keys must not cost their square.
using Json = nlohmann::json;

// Characters of one text. With the limits below even the largest outcome or verdict fits into
// kMaxFrame, and the largest join into kMaxHandshakeFrame.
constexpr size_t kMaxText = 1024;
constexpr size_t kMaxEventText = 256;
constexpr size_t kMaxFactText = 256;
constexpr size_t kMaxFindingText = 512;
constexpr size_t kMaxLines = 64;         // of an excerpt, of a list of hosts
constexpr size_t kMaxOthersExcerpt = 4;  // lines that another cause than the root keeps
constexpr size_t kMaxEvidenceGroups = 16;
constexpr int kMaxNesting = 8;  // ours have 4

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
  kAnswer = 10,
  kPiece = 11,
  kAnswerEnd = 12,
  kAnswerBroken = 13,
  kSamples = 14,
  kRestartRequest = 15,
  kEvidenceRequest = 16,
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
  kRequest = 74,
  kCredit = 75,
  kCancel = 76,
  kWatch = 77,
  kRestartRefused = 78,
  kSaveEvidence = 79,
};

// In the order of the variants.
constexpr uint8_t kAgentKinds[] = {kHello,        kJoin,    kHeartbeat,      kFailed,
                                   kSettled,      kEvents,  kStopRequest,    kLeave,
                                   kGoodbye,      kAnswer,  kPiece,          kAnswerEnd,
                                   kAnswerBroken, kSamples, kRestartRequest, kEvidenceRequest};
constexpr uint8_t kHostKinds[] = {kChallenge, kRefuse,  kWelcome, kEcho,           kAssign,
                                  kStop,      kVerdict, kEnd,     kAwaited,        kRequest,
                                  kCredit,    kCancel,  kWatch,   kRestartRefused, kSaveEvidence};
constexpr std::string_view kAgentNames[] = {
    "hello",         "join",    "heartbeat",       "failed",          "settled", "events",
    "stop_request",  "leave",   "goodbye",         "answer",          "piece",   "answer_end",
    "answer_broken", "samples", "restart_request", "evidence_request"};
constexpr std::string_view kHostNames[] = {
    "challenge", "refuse",  "welcome", "heartbeat_echo",  "assign",
    "stop",      "verdict", "end",     "awaited",         "request",
    "credit",    "cancel",  "watch",   "restart_refused", "save_evidence"};
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
  void fit(event::FailureFound& failure) {
    if (failure.evidence.size() > event::kMaxEvidenceLines)
      failure.evidence.resize(event::kMaxEvidenceLines);
    for (std::string* name : {&failure.host, &failure.kind, &failure.excerpt_source,
                              &failure.comm_error, &failure.line_source})
      Fitter{kMaxEventText}.fit(*name);
    Fitter{kMaxEventText}.fit(failure.evidence);
    Fitter{kMaxFindingText}.fit(failure.line);
    failure.blames = cut_ranges(failure.blames, kMaxEventText);
    std::string logs[] = {std::move(failure.stdout_log), std::move(failure.stderr_log)};
    for (std::string& path : logs)
      Fitter().fit(path);
    fit<event::FailureFound>(failure);
    failure.stdout_log = std::move(logs[0]);
    failure.stderr_log = std::move(logs[1]);
  }
  // Those beside the root.
  void fit(std::vector<event::FailureFound>& failures) {
    if (failures.size() > kMaxOtherCauses) failures.resize(kMaxOtherCauses);
    for (event::FailureFound& failure : failures) {
      std::vector<std::string>& excerpt = failure.excerpt;
      if (failure.evidence.size() > kMaxOthersExcerpt) failure.evidence.resize(kMaxOthersExcerpt);
      if (excerpt.size() > kMaxOthersExcerpt)  // the end says most
        excerpt.erase(excerpt.begin(), excerpt.end() - kMaxOthersExcerpt);
      Fitter{kMaxFindingText}.fit(failure);
    }
  }
  void fit(NodeOutcome& outcome) {
    outcome.finished = cut_ranges(outcome.finished, max_text);
    outcome.more_failed = cut_ranges(outcome.more_failed, max_text);
    fit<NodeOutcome>(outcome);
  }
  void fit(std::vector<event::CollectiveFinding>& findings) {
    if (findings.size() > kMaxCollectiveFindings) findings.resize(kMaxCollectiveFindings);
    for (event::CollectiveFinding& finding : findings) {
      finding.suspects = cut_ranges(finding.suspects, kMaxFindingText);
      finding.waiting = cut_ranges(finding.waiting, kMaxFindingText);
      Fitter{kMaxFindingText}.fit<event::CollectiveFinding>(finding);
    }
  }
  void fit(StopOrder& order) {
    order.hung = cut_ranges(order.hung, max_text);
    fit<StopOrder>(order);
  }
  void fit(event::EvidenceSaved& saved) {
    if (saved.groups.size() > kMaxEvidenceGroups) saved.groups.resize(kMaxEvidenceGroups);
    std::string folder = std::move(saved.folder);
    Fitter().fit(folder);
    fit<event::EvidenceSaved>(saved);
    saved.folder = std::move(folder);
  }
  void fit(std::vector<event::VictimGroup>& groups) {
    if (groups.size() > kMaxVictimGroups) groups.resize(kMaxVictimGroups);
    for (event::VictimGroup& group : groups) {
      group.ranks = cut_ranges(group.ranks, max_text);
      fit<event::VictimGroup>(group);
    }
  }
};

// Only these are of use at the coordinator.
bool travels(const EventBody& body) {
  return std::holds_alternative<event::WorkerSpawned>(body) ||
         std::holds_alternative<event::SpawnFailed>(body) ||
         std::holds_alternative<event::FirstOutput>(body) ||
         std::holds_alternative<event::WorkerExited>(body) ||
         std::holds_alternative<event::SignalSent>(body) ||
         std::holds_alternative<event::LeftoverFound>(body) ||
         std::holds_alternative<event::EvidenceSaved>(body) ||
         std::holds_alternative<event::Trouble>(body);
}

template <typename T>
void fit(T& message) {
  Fitter().fit(message);
}
void fit(message::Hello&) {}  // compared, and cleaned by whoever shows it
void fit(message::Challenge&) {}
template <BinaryMessage T>
void fit(T&) {}
void fit(message::Join& join) {
  NodeFacts& facts = join.facts;
  std::string log_dir = std::move(facts.log_dir);
  std::string policy = std::move(facts.terms.failure_policy);
  Fitter().fit(log_dir);
  Fitter{kMaxPolicyText}.fit(policy);
  Fitter{kMaxFactText}.fit(facts);
  facts.log_dir = std::move(log_dir);
  facts.terms.failure_policy = std::move(policy);
}
void fit(message::Request& request) {
  keep_headers(request.headers);
}
void fit(message::Answer& answer) {
  keep_headers(answer.headers);
}
void fit(message::Events& message) {
  std::erase_if(message.events, [](const EventBody& body) { return !travels(body); });
  if (message.events.size() > kMaxEventsPerMessage) message.events.resize(kMaxEventsPerMessage);
  for (EventBody& body : message.events)
    std::visit([](auto& event) { Fitter{kMaxEventText}.fit(event); }, body);
}

using muster::body_of;
using muster::read_body;

template <typename T>
std::string body_of(T& message) {
  fit(message);
  Json json = Json::object();
  describe(JsonWriter<Json>{json}, message);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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

// Operations are many small numbers: as JSON of their own they would be ten times as long.
std::string body_of(NodeOutcome& outcome) {
  fit(outcome);
  Json json = Json::object();
  describe(JsonWriter<Json>{json}, outcome);
  if (!outcome.operations.empty()) {
    json["operations"] = base64_encode(encode_known_ranks(outcome.operations));
  }
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
const char* read_body(std::string_view body, NodeOutcome& outcome) {
  const Json json = parse(body);
  if (!json.is_object()) return "body";
  JsonReader<Json> reader{json};
  std::string operations;
  describe(reader, outcome);
  reader("operations", operations);
  if (reader.wrong || operations.empty()) return reader.wrong;
  const std::optional<std::string> bytes = base64_decode(operations);
  return bytes && decode_known_ranks(*bytes, outcome.operations) ? nullptr : "operations";
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
