// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/status_json.h"

#include <algorithm>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/kinds.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/report.h"
#include "supervisor/status/attention.h"
#include "supervisor/status/collective_view.h"
#include "supervisor/status/job_summary.h"
#include "supervisor/status/json_out.h"
#include "supervisor/status/rows.h"
#include "supervisor/status/status_ranks.h"
#include "supervisor/status/store_waits.h"

// Every part has its limits (StatusLimits). Texts are quoted, which may double them, so the limits
// alone promise nothing: an answer that became too long is written once more with half of them.

namespace muster {

namespace {

struct Writer {
  JsonOut& out;
  const StatusFacts& facts;
  const StatusLimits& limits;
  const JobView& view = facts.view;
  const JobState& state = facts.view.state;
  const event::CollectivesFound& found;

  void text(const char* name, std::string_view what, size_t max) {
    out.field(name, short_text(what, max));
  }

  void head();
  void attention(const StoreWaits& waits);
  void collectives();
  void waiting();
  void stop();
  void failure();
  void failure_body(const event::FailureFound& cause);
  void excerpt(const event::FailureFound& cause);
  void other_failures(const AttemptState& attempt);
  void victims(const AttemptState& attempt);
  void earlier(const AttemptState& shown);
  void operations(const AttemptState& shown);
  void store(const StoreWaits& waits);
  void wait_group(const StoreWaitGroup& group);
  void nodes();
};

void Writer::head() {
  const event::JobStarted& job = state.job;
  const AttemptState* attempt = state.current();
  text("summary", job_summary(view), 2 * limits.text);
  out.field("phase", phase_name(view));
  out.key("outcome");
  state.end ? out.value(outcome_name(state.end->outcome)) : out.null();
  out.field("exit_code", state.end ? std::optional(state.end->exit_code) : std::nullopt);
  out.field("live", view.live);
  text("run_id", job.run_id, limits.path);
  text("program", job.program, limits.path);
  text("host", job.host, limits.name);
  out.field("pid", job.pid);
  const bool over = state.end || !view.live;
  out.field("started_us", unix_us(state, 0));
  out.field("elapsed_s", tenths(over ? state.last_us : view.now_us - unix_us(state, 0)));
  out.field("attempt", attempt ? std::optional(attempt->attempt) : std::nullopt);
  out.key("restarts");
  out.begin_row();
  out.field("used", state.restarts_used);
  out.field("max", job.max_restarts);
  out.end_object();
  out.field("world_size", job.world_size);
  text("log_dir", job.log_dir, limits.path);
}

void Writer::attention(const StoreWaits& waits) {
  out.key("attention");
  out.begin_array();
  for (const std::string& line : attention_lines(facts, waits, found))
    out.value(short_text(line, limits.text));
  out.end_array();
}

void Writer::collectives() {
  const size_t shown = std::min(found.found.size(), limits.collectives);
  out.key("collectives");
  out.begin_array();
  for (size_t i = 0; i < shown; ++i)
    write_collective(out, found.found[i], limits.text, limits.ranges);
  out.end_array();
  out.field("collectives_left_out",
            found.found.size() - shown + static_cast<size_t>(std::max(0, found.left_out)));
}

void Writer::waiting() {
  out.key("waiting");
  if (!state.awaited) return out.null();
  out.begin_object();
  text("text", state.awaited->text, limits.text);
  out.field("have", state.awaited->have);
  out.field("min", state.awaited->min);
  out.field("max", state.awaited->max);
  out.key("hosts");
  out.begin_list();
  for (size_t i = 0; i < std::min(state.awaited->hosts.size(), limits.nodes); ++i)
    out.value(short_text(state.awaited->hosts[i], limits.name));
  out.end_array();
  out.field("left_s", tenths(state.awaited->left_ms * 1000));
  out.end_object();
}

void Writer::stop() {
  if (state.stop_signal) {
    text("stop", describe_signal(*state.stop_signal), limits.text);
  } else if (state.stop_order) {
    text("stop", state.stop_order->why, limits.text);
  } else {
    out.field("stop", std::optional<int>());
  }
}

// The current attempt's, or, while another one runs after a restart, the last one's.
void Writer::failure() {
  const AttemptState* shown = nullptr;
  const bool succeeded = state.end && state.end->outcome == Outcome::kSucceeded;
  for (size_t i = state.attempts.size(); i-- > 0 && shown == nullptr && !succeeded;) {
    if (state.attempts[i].root_cause) shown = &state.attempts[i];
  }
  out.key("failure");
  if (shown == nullptr) {
    out.null();
  } else {
    out.begin_object();
    failure_body(*shown->root_cause);
    other_failures(*shown);
    victims(*shown);
    earlier(*shown);
    operations(*shown);
    out.end_object();
  }
}

void Writer::failure_body(const event::FailureFound& cause) {
  const FailureKind& kind = failure_kind(cause.kind);
  text("message", cause.message, limits.text);
  out.field("reason", kind.reason);
  out.field("hint", kind.hint);
  out.field("kind", cause.kind);
  out.field("attempt", cause.attempt);
  out.field("rank", cause.rank);
  out.field("local_rank", cause.local_rank);
  out.field("node", cause.node);
  text("host", cause.host.empty() ? state.job.host : cause.host, limits.name);
  out.field("pid", cause.pid > 0 ? std::optional(cause.pid) : std::nullopt);
  out.field("exit_code", cause.exit_code);
  out.key("signal");
  cause.signal == 0 ? out.null() : out.value(signal_name(cause.signal));
  out.field("time_us", cause.time_us > 0 ? std::optional(cause.time_us) : std::nullopt);
  out.field("ran_s", cause.ran_us >= 0 ? std::optional(tenths(cause.ran_us)) : std::nullopt);
  out.field("can_heal", cause.can_heal);
  text("note", cause.note, limits.text);
  excerpt(cause);
  text("stderr_log", cause.stderr_log, limits.path);
  text("stdout_log", cause.stdout_log, limits.path);
}

// The end of it, where what matters is.
void Writer::excerpt(const event::FailureFound& cause) {
  std::vector<std::string> lines;
  size_t bytes = 0;
  for (size_t i = cause.excerpt.size(); i-- > 0;) {
    std::string line = short_text(cause.excerpt[i], limits.text);
    bytes += line.size();
    if (lines.size() == limits.excerpt_lines || bytes > limits.excerpt) break;
    lines.push_back(std::move(line));
  }
  text("excerpt_source", cause.excerpt_source, limits.name);
  out.field("excerpt_left_out", cause.excerpt.size() - lines.size());
  out.key("excerpt");
  out.begin_array();
  for (size_t i = lines.size(); i-- > 0;)
    out.value(lines[i]);
  out.end_array();
}

void Writer::other_failures(const AttemptState& attempt) {
  const std::vector<event::FailureFound>& others = attempt.other_causes;
  out.field("other_failures_count", others.size());
  out.key("other_failures");
  out.begin_array();
  for (size_t i = 0; i < std::min(others.size(), limits.other_failures); ++i) {
    out.begin_row();
    out.field("rank", others[i].rank);
    text("host", others[i].host, limits.name);
    out.field("kind", others[i].kind);
    text("message", others[i].message, limits.text / 2);
    out.end_object();
  }
  out.end_array();
}

void Writer::victims(const AttemptState& attempt) {
  const std::vector<event::VictimGroup> groups = victim_groups(attempt);
  out.key("victims");
  out.begin_array();
  for (size_t i = 0; i < std::min(groups.size(), limits.victims); ++i) {
    out.begin_row();
    out.field("ranks", cut_ranges(groups[i].ranks, limits.ranges));
    text("reason", groups[i].reason, limits.text / 2);
    out.end_object();
  }
  out.end_array();
}

void Writer::earlier(const AttemptState& shown) {
  out.key("earlier_failures");
  out.begin_array();
  size_t left = limits.other_failures;
  for (size_t i = state.attempts.size(); i-- > 0 && left > 0;) {
    const AttemptState& attempt = state.attempts[i];
    if (!attempt.root_cause || attempt.attempt >= shown.attempt) continue;
    --left;
    out.begin_row();
    out.field("attempt", attempt.attempt);
    out.field("rank", attempt.root_cause->rank);
    out.field("kind", attempt.root_cause->kind);
    text("message", attempt.root_cause->message, limits.text / 2);
    out.end_object();
  }
  out.end_array();
}

// What its workers were doing when it was ended.
void Writer::operations(const AttemptState& shown) {
  out.key("collectives");
  out.begin_array();
  for (size_t i = 0; shown.collectives && i < shown.collectives->found.size(); ++i) {
    if (i == limits.other_failures) break;
    write_collective(out, shown.collectives->found[i], limits.text, limits.ranges);
  }
  out.end_array();
}

void Writer::wait_group(const StoreWaitGroup& group) {
  out.begin_row();
  out.key("keys");
  out.begin_array();
  for (const std::string& key : group.keys)
    out.value(short_text(key, limits.text / 4));
  out.end_array();
  out.field("key_count", group.key_count);
  out.field("waiters", group.waiters);
  out.field("ranks", short_ranges(group.ranks, limits.ranges / 2));
  if (!group.pids.empty()) {
    out.key("pids");
    out.begin_array();
    for (uint32_t pid : group.pids)
      out.value(pid);
    out.end_array();
  }
  if (group.barrier) out.field("barrier", true);
  out.field("longest_s", tenths(group.longest_us));
  out.end_object();
}

void Writer::store(const StoreWaits& waits) {
  out.key("store");
  if (!facts.store) return out.null();
  out.begin_object();
  out.field("connections", facts.store->connections);
  out.field("keys", facts.store->keys);
  out.field("bytes", facts.store->bytes);
  out.field("requests", facts.store->requests);
  out.field("waiters", waits.waiters);
  out.field("longest_s", tenths(waits.longest_us));
  out.field("waiting_ranks", short_ranges(waits.ranks, limits.ranges));
  out.field("other_ranks", short_ranges(waits.others, limits.ranges));
  out.key("waits");
  out.begin_array();
  const size_t shown = std::min(waits.groups.size(), limits.wait_groups);
  for (size_t i = 0; i < shown; ++i)
    wait_group(waits.groups[i]);
  out.end_array();
  out.field("waits_left_out", waits.groups.size() - shown + waits.more_groups);
  out.end_object();
}

// Lost ones first.
void Writer::nodes() {
  std::vector<NodeRow> rows = node_rows(view);
  auto lost = [](const NodeRow& row) { return row.node && row.node->lost; };
  std::stable_partition(rows.begin(), rows.end(), lost);
  out.field("node_count", rows.size());
  out.key("nodes");
  out.begin_array();
  for (size_t i = 0; i < std::min(rows.size(), limits.nodes); ++i) {
    const NodeRow& row = rows[i];
    const event::NodeJoined* joined = row.node ? &row.node->joined : nullptr;
    const std::string& host = joined ? joined->host : row.span ? row.span->host : state.job.host;
    out.begin_row();
    out.field("node", row.span ? std::optional(row.span->node) : std::nullopt);
    text("host", host, limits.name);
    if (row.span) out.field("first_rank", row.span->first_rank);
    out.field("workers", joined     ? joined->workers
                         : row.span ? row.span->workers
                                    : state.job.local_world_size);
    if (joined && joined->spare) out.field("spare", true);
    if (lost(row)) {
      text("lost", row.node->lost->message, limits.text / 2);
    }
    out.end_object();
  }
  out.end_array();
}

void write_once(std::string& to, const StatusFacts& facts, const StatusLimits& limits,
                const StoreWaits& waits, const event::CollectivesFound& found,
                const std::optional<RankList>& asked) {
  JsonOut out(to, JsonOut::Layout::kLines);
  Writer writer{.out = out, .facts = facts, .limits = limits, .found = found};
  out.begin_object();
  writer.head();
  writer.attention(waits);
  writer.collectives();
  writer.waiting();
  writer.stop();
  writer.failure();
  writer.store(waits);
  writer.nodes();
  write_status_ranks(out, facts, limits, asked);
  out.end_object();
  to += '\n';
}

}  // namespace

void write_status(std::string& to, const StatusFacts& facts, const std::optional<RankList>& asked) {
  constexpr size_t kLeast = 16;  // divided by this it always fits
  const StoreWaits waits = fold_store_waits(facts.view.state, facts.waiters, facts.now);
  const event::CollectivesFound found = collectives_now(facts);
  for (size_t by = 1; by <= kLeast; by *= 2) {
    to.clear();
    write_once(to, facts, StatusLimits().divided_by(by), waits, found, asked);
    if (asked || to.size() <= kMaxStatusBytes) return;
  }
}

std::string check_asked_ranks(const JobState& state, const RankList& asked) {
  const AttemptState* attempt = state.current();
  if (attempt == nullptr || attempt->ranks.empty()) return "no rank has been started yet";
  size_t count = 0;
  for (const auto& [first, last] : asked) {
    if (attempt->find(first) == nullptr || attempt->find(last) == nullptr) {
      return "ranks here are " + std::to_string(attempt->ranks.front().rank) + "-" +
             std::to_string(attempt->ranks.back().rank);
    }
    count += static_cast<size_t>(last - first) + 1;
    if (count > kMaxAskedRanks) {
      return "at most " + std::to_string(kMaxAskedRanks) + " ranks are told at once";
    }
  }
  return "";
}

}  // namespace muster
