// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/torchelastic_events.h"

#include <nlohmann/json.hpp>

#include "supervisor/diagnosis/wait_status.h"

namespace muster {

namespace {

using Json = nlohmann::ordered_json;

std::string base_name(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

struct Writer {
  const JobState& state;
  const Event& event;
  const TorchelasticFacts& facts;
  std::vector<std::string> lines = {};

  // Keys in torchrun's order.
  void add(const char* source, const std::string& status, const RankState* worker,
           const Json& details, Json raw_error = nullptr) {
    const AttemptState* attempt = state.current();
    Json metadata;
    metadata["run_id"] = state.job.run_id;
    metadata["global_rank"] = worker ? Json(worker->rank) : Json(nullptr);
    metadata["group_rank"] = attempt ? attempt->node : 0;
    metadata["worker_id"] = worker ? Json(std::to_string(worker->pid)) : Json(nullptr);
    metadata["role"] = facts.role;
    metadata["hostname"] = state.job.host;
    metadata["state"] = status;
    metadata["total_run_time"] = event.mono_us / 1'000'000;
    metadata["rdzv_backend"] = facts.rdzv_backend;
    metadata["raw_error"] = std::move(raw_error);
    metadata["metadata"] = details.dump(-1, ' ', false, Json::error_handler_t::replace);
    metadata["agent_restarts"] = attempt ? attempt->restart_count : 0;
    metadata["duration_ms"] = attempt ? (event.mono_us - attempt->started_us) / 1000 : 0;
    Json line;
    line["name"] = "torchelastic.worker.status." + status;
    line["source"] = source;
    line["timestamp"] = std::chrono::floor<std::chrono::seconds>(event.time).time_since_epoch() /
                        std::chrono::seconds(1);
    line["metadata"] = std::move(metadata);
    lines.push_back(line.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  Json group_details() const {
    const AttemptState* attempt = state.current();
    return {{"group_world_size", attempt ? attempt->node_count : 1},
            {"entry_point", base_name(state.job.program)}};
  }

  void add_worker(const RankState& rank, const std::string& status, Json raw_error = nullptr) {
    Json details = group_details();
    details["local_rank"] = {rank.local_rank};
    details["role_rank"] = {rank.rank};
    details["role_world_size"] = {state.job.world_size};
    bool ended = rank.phase == RankPhase::kExited;
    WaitStatus end = decode_wait_status(rank.wait_status);
    int code = end.signal != 0 ? -end.signal : end.exit_code;
    details["exit_code"] = {ended ? Json(code) : Json(nullptr)};
    details["worker_pid"] = {rank.pid};
    add("WORKER", status, &rank, details, std::move(raw_error));
  }

  void add_ends() {
    const AttemptState* attempt = state.current();
    if (!attempt) return;
    for (const RankState& rank : attempt->ranks) {
      if (rank.node != attempt->node) continue;  // its own muster says it
      if (rank.phase == RankPhase::kPending || rank.phase == RankPhase::kSpawnFailed) continue;
      if (const event::FailureFound* failure = failure_of(*attempt, rank.rank)) {
        Json raw;
        raw["message"] = failure->message;
        add_worker(rank, "FAILED", raw.dump(-1, ' ', false, Json::error_handler_t::replace));
        continue;
      }
      bool success = rank.phase == RankPhase::kExited &&
                     decode_wait_status(rank.wait_status).success() &&
                     rank.stopped_for == StopReason::kNone;
      add_worker(rank, success ? "SUCCEEDED" : "TERMINATED");
    }
  }

  static const event::FailureFound* failure_of(const AttemptState& attempt, int rank) {
    if (attempt.root_cause && attempt.root_cause->rank == rank) return &*attempt.root_cause;
    for (const event::FailureFound& other : attempt.other_causes) {
      if (other.rank == rank) return &other;
    }
    return nullptr;
  }

  template <typename E>
  void operator()(const E&) {}

  void operator()(const event::AttemptStarted&) {
    add("AGENT", "RENDEZVOUS", nullptr, group_details());
    add("AGENT", "ASSIGN_WORKER_RANKS", nullptr, group_details());
  }

  void operator()(const event::WorkerSpawned& e) {
    const AttemptState* attempt = state.current();
    const RankState* rank = attempt ? attempt->find(e.rank) : nullptr;
    if (rank != nullptr && rank->node == attempt->node) add_worker(*rank, "START");
  }

  void operator()(const event::JobEnded& e) {
    add_ends();
    bool succeeded = e.outcome == Outcome::kSucceeded;
    const AttemptState* attempt = state.current();
    Json raw_error = nullptr;
    if (!succeeded && attempt && attempt->root_cause) raw_error = attempt->root_cause->message;
    add("AGENT", succeeded ? "SUCCEEDED" : "FAILED", nullptr, group_details(),
        std::move(raw_error));
  }
};

}  // namespace

std::vector<std::string> torchelastic_events(const JobState& after, const Event& event,
                                             const TorchelasticFacts& facts) {
  Writer writer{after, event, facts};
  std::visit(writer, event.body);
  return std::move(writer.lines);
}

}  // namespace muster
