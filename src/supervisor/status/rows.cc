// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/rows.h"

#include <algorithm>
#include <unordered_map>

#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/event_fields.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/report.h"
#include "supervisor/status/collective_view.h"
#include "supervisor/status/failure_rows.h"
#include "supervisor/status/job_source.h"
#include "supervisor/status/job_summary.h"

namespace muster {

namespace {

constexpr int kApiVersion = 1;
constexpr size_t kMaxTroubles = 20;

std::optional<int64_t> time_of(const JobView& view, int64_t mono_us) {
  return unix_us(view.state, mono_us);
}

std::optional<std::string> signal_or_null(int signal) {
  if (signal == 0) return std::nullopt;
  return signal_name(signal);
}

std::optional<int> positive(int number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

void write_waiting(JsonOut& out, const JobState& state) {
  out.key("waiting");
  if (!state.awaited) return out.null();
  const event::NodesAwaited& awaited = *state.awaited;
  out.begin_row();
  out.field("text", awaited.text);
  out.field("have", awaited.have);
  out.field("min", awaited.min);
  out.field("max", awaited.max);
  out.key("hosts");
  out.begin_array();
  for (const std::string& host : awaited.hosts)
    out.value(host);
  out.end_array();
  out.field("left_s", static_cast<double>(awaited.left_ms) / 1000);
  out.end_object();
}

void write_stop(JsonOut& out, const JobState& state) {
  out.key("stop");
  if (!state.stop_signal && !state.stop_order) return out.null();
  out.begin_row();
  if (const auto& stop = state.stop_signal) {
    out.field("signal", signal_name(stop->signal));
    out.field("sender", stop->sender);
    out.field("host", stop->host.empty() ? state.job.host : stop->host);
    out.field("text", describe_signal(*stop));
  } else {
    out.field("signal", signal_name(state.stop_order->signal));
    out.field("sender", "");
    out.field("host", "");
    out.field("text", state.stop_order->why);
  }
  out.end_object();
}

void write_troubles(JsonOut& out, const JobState& state) {
  out.key("troubles");
  out.begin_array();
  const size_t count = state.troubles.size();
  for (size_t i = count > kMaxTroubles ? count - kMaxTroubles : 0; i < count; ++i) {
    out.begin_row();
    out.field("subject", state.troubles[i].subject);
    out.field("message", state.troubles[i].message);
    out.end_object();
  }
  out.end_array();
}

void write_leftovers(JsonOut& out, const JobState& state) {
  out.key("leftovers");
  out.begin_array();
  for (const event::LeftoverFound& leftover : state.leftovers) {
    out.begin_row();
    out.field("pid", leftover.pid);
    out.field("command", leftover.command);
    out.field("ended", leftover.ended);
    out.field("fate", leftover.fate);
    out.end_object();
  }
  out.end_array();
}

void write_counts(JsonOut& out, const JobView& view, const AttemptState& attempt) {
  const RankCounts counts = count_ranks(view, attempt);
  out.key("counts");
  out.begin_row();
  out.field("pending", counts[RankShown::kPending]);
  out.field("running", counts[RankShown::kRunning]);
  out.field("exited", counts[RankShown::kExited]);
  out.field("failed", counts[RankShown::kFailed] + counts[RankShown::kSpawnFailed]);
  out.field("stopped", counts[RankShown::kStopped]);
  out.field("lost", counts[RankShown::kLost]);
  out.end_object();
}

}  // namespace

std::vector<NodeRow> node_rows(const JobView& view) {
  const AttemptState* attempt = view.state.current();
  std::vector<NodeRow> rows;
  std::unordered_map<std::string_view, const event::NodeSpan*> spans;
  if (attempt) {
    for (const event::NodeSpan& span : attempt->nodes) {
      if (view.state.nodes.empty()) {
        rows.push_back({nullptr, &span});
      } else {
        spans.emplace(span.id, &span);
      }
    }
  }
  for (const NodeState& node : view.state.nodes) {
    const auto span = spans.find(node.joined.id);
    rows.push_back({&node, span == spans.end() ? nullptr : span->second});
  }
  if (rows.empty() && view.state.job.max_nodes == 1) rows.push_back({});
  return rows;
}

void write_job(JsonOut& out, const JobView& view) {
  const JobState& state = view.state;
  const event::JobStarted& job = state.job;
  const AttemptState* attempt = state.current();
  out.begin_object();
  out.field("api", kApiVersion);
  out.field("version", MUSTER_VERSION);
  out.field("run_id", job.run_id);
  out.field("host", job.host);
  out.field("program", job.program);
  out.key("command");
  out.begin_list();
  for (const std::string& word : job.command)
    out.value(word);
  out.end_array();
  out.field("log_dir", job.log_dir);
  out.field("started_by", job.started_by);
  out.field("pid", job.pid);
  out.field("live", view.live);
  out.field("hosting", view.hosting);
  out.field("phase", phase_name(view));
  out.key("outcome");
  state.end ? out.value(outcome_name(state.end->outcome)) : out.null();
  out.field("exit_code", state.end ? std::optional(state.end->exit_code) : std::nullopt);
  out.field("why", state.end ? state.end->why : "");
  out.field("summary", job_summary(view));
  write_stall_now(out, view);
  out.field("restart_due_us", restart_due_us(view));
  out.field("started_us", unix_us(state, 0));
  out.field("now_us", view.now_us);
  out.field("ended_us", state.end ? time_of(view, state.last_us) : std::nullopt);
  out.field("attempt", attempt ? std::optional(attempt->attempt) : std::nullopt);
  out.field("restarts_used", state.restarts_used);
  out.field("max_restarts", job.max_restarts);
  out.field("world_size", job.world_size);
  out.field("local_world_size", job.local_world_size);
  out.field("min_nodes", job.min_nodes);
  out.field("max_nodes", job.max_nodes);
  out.field("master_addr", state.master_addr);
  out.field("master_port", state.master_port);
  write_waiting(out, state);
  write_stop(out, state);
  write_troubles(out, state);
  write_leftovers(out, state);
  out.end_object();
}

void write_node(JsonOut& out, const JobView& view, const NodeRow& row) {
  const event::JobStarted& job = view.state.job;
  const event::NodeJoined* joined = row.node ? &row.node->joined : nullptr;
  // Of a node that joined nobody: this one.
  const std::string& own_id = row.span && !row.span->id.empty() ? row.span->id : job.host;
  out.begin_row();
  out.field("id", joined ? joined->id : own_id);
  out.field("node", row.span ? std::optional(row.span->node) : std::nullopt);
  out.field("host", joined ? joined->host : row.span ? row.span->host : job.host);
  out.field("address", joined ? joined->address : "");
  out.field("pid", joined ? joined->pid : job.pid);
  out.field("workers", joined     ? joined->workers
                       : row.span ? row.span->workers
                                  : job.local_world_size);
  out.field("first_rank", row.span ? std::optional(row.span->first_rank) : std::nullopt);
  out.field("spare", joined && joined->spare);
  const bool gone = row.node && row.node->lost;
  out.field("here", view.live && !gone);
  out.field("joined_us", unix_us(view.state, row.node ? row.node->joined_us : 0));
  out.key("lost");
  if (gone) {
    out.begin_object();
    out.field("how", row.node->lost->how);
    out.field("message", row.node->lost->message);
    out.end_object();
  } else {
    out.null();
  }
  out.end_object();
}

void write_attempt(JsonOut& out, const JobView& view, const AttemptState& attempt) {
  out.begin_object();
  out.field("attempt", attempt.attempt);
  out.field("restart_count", attempt.restart_count);
  out.field("world_size", attempt.world_size);
  out.field("node_count", attempt.node_count);
  out.field("started_us", unix_us(view.state, attempt.started_us));
  out.field("ended_us", attempt_end_us(view, attempt));
  out.field("state", attempt_state_name(view, attempt));
  out.key("nodes");
  out.begin_array();
  for (const event::NodeSpan& span : attempt.nodes) {
    out.begin_row();
    out.field("node", span.node);
    out.field("host", span.host);
    out.field("first_rank", span.first_rank);
    out.field("workers", span.workers);
    out.end_object();
  }
  out.end_array();
  write_counts(out, view, attempt);
  out.key("failure");
  attempt.root_cause ? write_failure(out, view, *attempt.root_cause) : out.null();
  out.key("other_failures");
  out.begin_array();
  for (const event::FailureFound& other : attempt.other_causes)
    write_failure(out, view, other);
  out.end_array();
  write_victims(out, attempt);
  write_collectives(out, attempt);
  write_stalls(out, view, attempt);
  write_saved(out, attempt);
  out.end_object();
}

void write_rank(JsonOut& out, const JobView& view, const AttemptState& attempt,
                const RankState& rank) {
  const bool exited = rank.phase == RankPhase::kExited;
  const WaitStatus status = exited ? decode_wait_status(rank.wait_status) : WaitStatus();
  out.begin_row();
  out.field("attempt", attempt.attempt);
  out.field("rank", rank.rank);
  out.field("local_rank", rank.local_rank);
  out.field("node", rank.node);
  out.field("host", host_of(attempt, rank));
  out.field("pid", positive(rank.pid));
  out.field("state", name_of(rank_shown(view, attempt, rank)));
  out.field("exit_code", exited ? std::optional(status.exit_code) : std::nullopt);
  out.field("signal", signal_or_null(status.signal));
  const bool ended = exited || rank.phase == RankPhase::kSpawnFailed;
  out.field("started_us", rank.pid > 0 ? time_of(view, rank.started_us) : std::nullopt);
  out.field("ended_us", ended ? time_of(view, rank.ended_us) : std::nullopt);
  out.key("stopped_for");
  rank.stopped_for == StopReason::kNone ? out.null() : out.value(name_of(rank.stopped_for));
  out.field("stop_signal", signal_or_null(rank.stop_signal));
  out.field("max_rss_bytes",
            rank.max_rss_kib > 0 ? std::optional(rank.max_rss_kib * 1024) : std::nullopt);
  out.field("stdout", rank.wrote_stdout);
  out.field("stderr", rank.wrote_stderr);
  out.end_object();
}

void write_values(JsonOut& out, const RankSample& sample) {
  out.key("values");
  out.begin_list();
  for (const auto& [name, value] : sample.values) {
    out.begin_list();
    out.value(name);
    out.value(value);
    out.end_array();
  }
  out.end_array();
}

void write_sample(JsonOut& out, const RankSample& sample) {
  auto known = [](auto number) { return number >= 0 ? std::optional(number) : std::nullopt; };
  out.begin_row();
  out.field("rank", sample.rank);
  out.field("time_us", sample.time_us);
  out.field("cpu", known(sample.cpu));
  out.field("rss_bytes", known(sample.rss_bytes));
  out.field("last_output_us",
            sample.last_output_us > 0 ? std::optional(sample.last_output_us) : std::nullopt);
  out.field("gpu", known(sample.gpu));
  out.field("gpu_memory_bytes", known(sample.gpu_memory_bytes));
  out.field("step", known(sample.step));
  out.field("steps", known(sample.steps));
  out.field("steps_per_s", known(sample.steps_per_s));
  out.field("loss", sample.loss);
  out.field("heartbeat_us",
            sample.heartbeat_us > 0 ? std::optional(sample.heartbeat_us) : std::nullopt);
  write_values(out, sample);
  out.field("alive_us", sample.alive_us > 0 ? std::optional(sample.alive_us) : std::nullopt);
  out.field("spins", sample.spins);
  out.field("process_state",
            sample.state != 0 ? std::optional(std::string(1, sample.state)) : std::nullopt);
  out.field("wait_channel",
            sample.wait_channel.empty() ? std::nullopt : std::optional(sample.wait_channel));
  out.key("operation");
  write_operation(out, sample);
  out.end_object();
}

}  // namespace muster
