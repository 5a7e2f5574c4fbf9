// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/verdict_json.h"

#include <nlohmann/json.hpp>

#include "supervisor/job/event_fields.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/json_fields.h"
#include "supervisor/job/outcome.h"

namespace muster {

namespace {

using Json = nlohmann::ordered_json;

// With the keys that it has in events.jsonl.
template <typename T>
Json described(T value) {
  Json json = Json::object();
  describe(JsonWriter<Json>{json}, value);
  return json;
}

template <typename T>
Json described(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values)
    list.push_back(described(value));
  return list;
}

void add_causes(const AttemptState& attempt, Json& json) {
  const bool several = attempt.node_count > 1;
  if (attempt.root_cause) json["failure"] = described(*attempt.root_cause);
  json["others"] = described(attempt.other_causes);
  json["victims"] = described(several ? attempt.victims : victims_of(attempt));
  if (attempt.collectives) json["collectives"] = described(attempt.collectives->found);
}

}  // namespace

bool makes_verdict(const JobState& state, const EventBody& event) {
  if (const auto* end = std::get_if<event::JobEnded>(&event)) {
    return end->outcome == Outcome::kFailed;
  }
  const auto* restart = std::get_if<event::RestartScheduled>(&event);
  const AttemptState* attempt = state.current();
  return restart != nullptr && attempt != nullptr && attempt->root_cause &&
         attempt->attempt + 1 == restart->next_attempt;
}

std::string verdict_json(const JobState& state) {
  Json json;
  json["schema"] = "muster.verdict.v1";
  json["run_id"] = state.job.run_id;
  json["host"] = state.job.host;
  json["program"] = state.job.program;
  json["log_dir"] = state.job.log_dir;
  json["next"] = state.end ? "end" : "restart";
  json["exit_code"] = state.end ? Json(state.end->exit_code) : Json(nullptr);
  json["why"] = state.end ? state.end->why : "";
  json["restarts"] = {{"used", state.restarts_used}, {"max", state.job.max_restarts}};
  json["failure"] = nullptr;
  json["others"] = json["victims"] = json["collectives"] = Json::array();
  if (const AttemptState* attempt = state.current()) {
    json["attempt"] = attempt->attempt;
    json["world_size"] = attempt->world_size;
    json["node_count"] = attempt->node_count;
    json["no_restart"] = attempt->no_restart;
    add_causes(*attempt, json);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
