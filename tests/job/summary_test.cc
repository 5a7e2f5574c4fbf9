// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "job/job_story.h"
#include "supervisor/job/report.h"

namespace muster {

namespace {

using nlohmann::json;

const json& schema() {
  static const json value =
      json::parse(std::ifstream(MUSTER_SOURCE_DIR "/docs/summary.schema.json"));
  return value;
}

bool is_of_type(const json& value, const std::string& type) {
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number_integer();
  if (type == "null") return value.is_null();
  return type == value.type_name();
}

// The part of JSON Schema that ours uses. Returns the first violation, "" if there is none.
std::string violation(const json& value, const json& rule, const std::string& where) {
  if (rule.contains("$ref")) {
    std::string name = rule["$ref"];
    return violation(value, schema().at(json::json_pointer(name.substr(1))), where);
  }
  if (rule.contains("anyOf")) {
    std::string found;
    for (const json& choice : rule["anyOf"]) {
      found = violation(value, choice, where);
      if (found.empty()) return "";
    }
    return found;
  }
  if (rule.contains("const") && value != rule["const"]) return where + ": wrong constant";
  if (rule.contains("type")) {
    json types = rule["type"].is_array() ? rule["type"] : json::array({rule["type"]});
    bool fits = false;
    for (const json& type : types)
      fits = fits || is_of_type(value, type);
    if (!fits) return where + ": wrong type " + value.type_name();
  }
  if (rule.contains("enum")) {
    bool listed = false;
    for (const json& one : rule["enum"])
      listed = listed || one == value;
    if (!listed) return where + ": not in the list: " + value.dump();
  }
  if (value.is_array() && rule.contains("items")) {
    for (const json& item : value) {
      std::string found = violation(item, rule["items"], where + "[]");
      if (!found.empty()) return found;
    }
  }
  if (!value.is_object()) return "";
  for (const json& key : rule.value("required", json::array())) {
    if (!value.contains(key.get<std::string>())) return where + ": no " + key.get<std::string>();
  }
  json properties = rule.value("properties", json::object());
  for (const auto& [key, item] : value.items()) {
    if (!properties.contains(key)) return where + ": unknown " + key;
    std::string found = violation(item, properties[key], where + "." + key);
    if (!found.empty()) return found;
  }
  return "";
}

json summary(const JobStory& story) {
  json value = json::parse(summary_json(story.state));
  CHECK(violation(value, schema(), "summary") == "");
  return value;
}

}  // namespace

TEST_CASE("the summary of a failure has every field of its schema") {
  json value = summary(eventful_story());
  CHECK(value["schema"] == "muster.summary.v1");
  CHECK(value["run_id"] == "4f1c");
  CHECK(value["outcome"] == "failed");
  CHECK(value["exit_code"] == 127);
  CHECK(value["root_cause"]["rank"] == 2);
  CHECK(value["root_cause"]["host"] == "node-a");
  CHECK(value["root_cause"]["signal"].is_null());
  CHECK(value["other_causes"].size() == 1);
  CHECK(value["victims"].size() == 2);
  CHECK(value["victims"][1]["exit_code"] == 7);
  CHECK(value["earlier_failures"].size() == 1);
  CHECK(value["earlier_failures"][0]["attempt"] == 0);
  CHECK(value["restarts"]["used"] == 1);
  CHECK(value["leftovers"][0]["ended"] == true);
  CHECK(value["troubles"].size() == 1);
  CHECK(value["log_dir"] == "/runs/4f1c");
}

TEST_CASE("the summary of a success names no culprit but keeps what restarts healed") {
  JobStory story;
  story.start(2, 1).start_attempt(2).exits(1, SIGSEGV).say(story.failure(1));
  story.say(event::RestartScheduled{1, 1, 1, true}).start_attempt(2).exits(0, 0).exits(1, 0);
  story.ends(Outcome::kSucceeded, 0);
  json value = summary(story);
  CHECK(value["outcome"] == "succeeded");
  CHECK(value["root_cause"].is_null());
  CHECK(value["victims"].empty());
  CHECK(value["earlier_failures"].size() == 1);
  CHECK(value["started"] == "2026-11-29T12:00:00.000Z");
}

TEST_CASE("the summary of a stop names the signal, its sender and whom it ended") {
  JobStory story;
  story.start(2).start_attempt(2).after_ms(1500);
  story.say(event::SignalReceived{SIGTERM, 123, 1000, "alice, scancel", false, ""});
  story.stops(0, SIGTERM, StopReason::kSignal).stops(1, SIGTERM, StopReason::kSignal);
  story.exits(0, SIGTERM).exits(1, 3 << 8).ends(Outcome::kStopped, 143);
  json value = summary(story);
  CHECK(value["outcome"] == "stopped");
  CHECK(value["root_cause"].is_null());
  CHECK(value["stop"]["kind"] == "stopped_by_user");
  CHECK(value["stop"]["signal"] == "SIGTERM");
  CHECK(value["stop"]["sender_pid"] == 123);
  CHECK(value["victims"].size() == 2);
  CHECK(value["victims"][0]["signal"] == "SIGTERM");
  CHECK(value["duration_s"] == 1.5);
}

TEST_CASE("a stop by a batch system has a kind of its own, also where it was only heard of") {
  JobStory story;
  story.start(1).start_attempt(1);
  story.say(event::SignalReceived{SIGTERM, 123, 0, "root, slurmstepd", false, ""});
  story.exits(0, SIGTERM).ends(Outcome::kStopped, 143);
  CHECK(summary(story)["stop"]["kind"] == "stopped_by_scheduler");
  JobStory other;
  other.start(1).start_attempt(1);
  other.say(event::StopOrdered{0, SIGTERM, StopReason::kSignal, "SIGTERM on node-a"});
  other.say(event::JobEnded{Outcome::kStopped, 143, "", "stopped_by_scheduler"});
  CHECK(summary(other)["stop"]["kind"] == "stopped_by_scheduler");
}

TEST_CASE("text of any bytes gives valid JSON") {
  JobStory story;
  story.start(1).start_attempt(1).exits(0, 256);
  event::FailureFound found = story.failure(0, "bad \xFF\xC3 bytes");
  found.excerpt = {"\xFE", std::string("nul \0 here", 10)};
  story.say(found).ends(Outcome::kFailed, 1);
  CHECK(summary(story)["root_cause"]["message"] == "bad \xEF\xBF\xBD\xEF\xBF\xBD bytes");
}

TEST_CASE("the check against the schema can fail") {
  json value = json::parse(summary_json(eventful_story().state));
  json missing = value;
  missing["root_cause"].erase("kind");
  CHECK(violation(missing, schema(), "s") == "s.root_cause: no kind");
  json wrong = value;
  wrong["exit_code"] = "1";
  CHECK(violation(wrong, schema(), "s") == "s.exit_code: wrong type string");
  json odd = value;
  odd["outcome"] = "odd";
  CHECK(violation(odd, schema(), "s") == "s.outcome: not in the list: \"odd\"");
  json extra = value;
  extra["victims"][0]["new"] = 1;
  CHECK(violation(extra, schema(), "s") == "s.victims[]: unknown new");
}

}  // namespace muster
