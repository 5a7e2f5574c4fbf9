// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "supervisor/diagnosis/stop_sender.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/report.h"

namespace muster {

namespace {

using Json = nlohmann::ordered_json;

double seconds(int64_t microseconds) {
  const int64_t milliseconds = microseconds / 1000;
  return static_cast<double>(milliseconds) / 1000;
}

std::chrono::system_clock::time_point unix_time(int64_t microseconds) {
  return std::chrono::system_clock::time_point{std::chrono::microseconds(microseconds)};
}

Json failure_json(const JobState& state, const event::FailureFound& failure) {
  Json json;
  json["rank"] = failure.rank;
  json["local_rank"] = failure.local_rank;
  json["host"] = failure.host.empty() ? state.job.host : failure.host;
  json["node"] = failure.node;
  json["pid"] = failure.pid;
  json["attempt"] = failure.attempt;
  json["time"] =
      failure.time_us > 0 ? Json(utc_text(unix_time(failure.time_us), 3)) : Json(nullptr);
  json["ran_s"] = failure.ran_us >= 0 ? Json(seconds(failure.ran_us)) : Json(nullptr);
  json["kind"] = failure.kind;
  json["signal"] = failure.signal == 0 ? Json(nullptr) : Json(signal_name(failure.signal));
  json["exit_code"] = failure.exit_code;
  json["message"] = failure.message;
  json["line"] = failure.line;
  json["line_source"] = failure.line_source;
  json["evidence"] = failure.evidence;
  json["victim"] = failure.victim;
  json["blames"] = failure.blames;
  json["note"] = failure.note;
  json["excerpt"] = failure.excerpt;
  json["excerpt_source"] = failure.excerpt_source;
  json["stdout_log"] = failure.stdout_log;
  json["stderr_log"] = failure.stderr_log;
  return json;
}

Json victim_json(const AttemptState& attempt, const RankState& rank) {
  Json json;
  json["rank"] = rank.rank;
  json["local_rank"] = rank.local_rank;
  json["host"] = attempt.host_of(rank.rank);
  json["pid"] = rank.pid;
  json["attempt"] = attempt.attempt;
  bool ended = rank.phase == RankPhase::kExited;
  WaitStatus status = decode_wait_status(rank.wait_status);
  json["signal"] = ended && status.signal != 0 ? Json(signal_name(status.signal)) : Json(nullptr);
  json["exit_code"] = ended ? Json(status.exit_code) : Json(nullptr);
  json["reason"] = victim_reason(rank);
  return json;
}

Json stop_json(const JobState& state, const event::SignalReceived& stop) {
  Json json;
  json["kind"] = kind_of_stop(stop);
  json["signal"] = signal_name(stop.signal);
  json["sender_pid"] = stop.sender_pid;
  json["sender_uid"] = stop.sender_uid;
  json["sender"] = stop.sender;
  json["host"] = stop.host.empty() ? state.job.host : stop.host;
  return json;
}

// Another node was signalled, and this one only heard of it.
Json stop_order_json(const JobState& state, const event::StopOrdered& order) {
  Json json;
  const bool told = state.end && !state.end->kind.empty();
  json["kind"] = told ? state.end->kind : "stopped_by_user";
  json["signal"] = signal_name(order.signal);
  json["why"] = order.why;
  return json;
}

Json stop_json(const JobState& state) {
  if (state.stop_signal) return stop_json(state, *state.stop_signal);
  return state.stop_order ? stop_order_json(state, *state.stop_order) : Json(nullptr);
}

// The nodes of the last attempt, as far as this muster knows them.
Json nodes_json(const JobState& state) {
  Json list = Json::array();
  const AttemptState* attempt = state.current();
  if (!attempt) return list;
  for (const event::NodeSpan& span : attempt->nodes) {
    list.push_back({{"node", span.node},
                    {"host", span.host},
                    {"first_rank", span.first_rank},
                    {"workers", span.workers}});
  }
  return list;
}

Json leftover_json(const event::LeftoverFound& leftover) {
  Json json;
  json["pid"] = leftover.pid;
  json["command"] = leftover.command;
  json["state"] = leftover.state;
  json["wait_channel"] = leftover.wait_channel;
  json["ended"] = leftover.ended;
  json["fate"] = leftover.fate;
  if (!leftover.host.empty()) json["host"] = leftover.host;
  return json;
}

void add_causes(const JobState& state, Json& json) {
  Json others = Json::array();
  Json victims = Json::array();
  Json groups = Json::array();
  json["root_cause"] = nullptr;
  const AttemptState* attempt = state.current();
  bool succeeded = state.end && state.end->outcome == Outcome::kSucceeded;
  if (attempt && !succeeded) {
    if (attempt->root_cause) json["root_cause"] = failure_json(state, *attempt->root_cause);
    for (const auto& other : attempt->other_causes)
      others.push_back(failure_json(state, other));
    for (const RankState* rank : ranks_stopped_by_us(*attempt)) {
      victims.push_back(victim_json(*attempt, *rank));
    }
    for (const event::VictimGroup& group : attempt->victims)
      groups.push_back({{"ranks", group.ranks}, {"reason", group.reason}});
  }
  json["other_causes"] = std::move(others);
  json["victims"] = std::move(victims);
  json["victim_groups"] = std::move(groups);
}

// What the workers of the last attempt were doing when it was ended.
Json collectives_json(const JobState& state) {
  Json list = Json::array();
  const AttemptState* attempt = state.current();
  if (!attempt || !attempt->collectives) return list;
  for (const event::CollectiveFinding& found : attempt->collectives->found) {
    Json json;
    json["kind"] = found.kind;
    json["text"] = found.text;
    json["suspects"] = found.suspects;
    json["waiting"] = found.waiting;
    json["waited_s"] = seconds(found.waited_us);
    json["communicator"] = found.communicator;
    json["operation"] = found.operation;
    json["sequence"] = found.sequence;
    json["bytes"] = found.bytes >= 0 ? Json(found.bytes) : Json(nullptr);
    json["data_type"] = found.data_type.empty() ? Json(nullptr) : Json(found.data_type);
    list.push_back(std::move(json));
  }
  return list;
}

Json earlier_failures(const JobState& state) {
  Json list = Json::array();
  for (const AttemptState& attempt : state.attempts) {
    bool last = &attempt == state.current();
    if (last && !(state.end && state.end->outcome == Outcome::kSucceeded)) break;
    if (attempt.root_cause) list.push_back(failure_json(state, *attempt.root_cause));
  }
  return list;
}

}  // namespace

std::string summary_json(const JobState& state) {
  Json json;
  json["schema"] = "muster.summary.v1";
  json["run_id"] = state.job.run_id;
  json["outcome"] = state.end ? outcome_name(state.end->outcome) : "running";
  json["exit_code"] = state.end ? Json(state.end->exit_code) : Json(nullptr);
  json["why"] = state.end ? state.end->why : "";
  json["host"] = state.job.host;
  json["program"] = state.job.program;
  json["command"] = state.job.command;
  json["world_size"] = state.job.world_size;
  json["node_count"] = state.current() ? state.current()->node_count : 0;
  json["nodes"] = nodes_json(state);
  json["started"] = utc_text(state.started, 3);
  json["duration_s"] = seconds(state.last_us);
  add_causes(state, json);
  json["earlier_failures"] = earlier_failures(state);
  json["collectives"] = collectives_json(state);
  json["stop"] = stop_json(state);
  json["restarts"] = {{"used", state.restarts_used}, {"max", state.job.max_restarts}};
  json["leftovers"] = Json::array();
  for (const auto& leftover : state.leftovers)
    json["leftovers"].push_back(leftover_json(leftover));
  json["troubles"] = Json::array();
  for (const auto& trouble : state.troubles) {
    json["troubles"].push_back({{"subject", trouble.subject}, {"message", trouble.message}});
  }
  json["log_dir"] = state.job.log_dir;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
