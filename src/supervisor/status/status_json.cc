// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/status_json.h"

#include <algorithm>

#include "supervisor/cli/ranges.h"
#include "supervisor/diagnosis/stall_hint.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/report.h"
#include "supervisor/status/attention.h"
#include "supervisor/status/collective_view.h"
#include "supervisor/status/job_summary.h"
#include "supervisor/status/json_out.h"
#include "supervisor/status/rows.h"
#include "supervisor/status/status_failure.h"
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
  void stalls();
  void stall(const event::StallFound& found, int64_t lasted_us);
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
  const std::optional<int64_t> due_us = restart_due_us(view);
  out.field("due_s", due_us ? std::optional(tenths(std::max<int64_t>(0, *due_us - view.now_us)))
                            : std::nullopt);
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

void Writer::stall(const event::StallFound& found, int64_t lasted_us) {
  text("kind", found.kind, limits.name);
  text("text", found.text, limits.text);
  out.field("hint", stall_hint(found.kind));
  out.field("suspects", cut_ranges(found.suspects, limits.ranges));
  out.field("waiting", cut_ranges(found.waiting, limits.ranges));
  out.field("since_us", found.since_us);
  out.field("lasted_s", lasted_us >= 0 ? std::optional(tenths(lasted_us)) : std::nullopt);
}

// That of now, those before it in this attempt (the newest first), and what was saved meanwhile.
void Writer::stalls() {
  const event::StallFound* now = stall_now(view);
  out.key("stall");
  if (now) {
    out.begin_object();
    stall(*now, std::max<int64_t>(0, view.now_us - now->since_us));
    out.end_object();
  } else {
    out.null();
  }
  const AttemptState* attempt = state.current();
  const size_t past = attempt ? attempt->past_stalls.size() : 0;
  out.key("past_stalls");
  out.begin_array();
  for (size_t i = past; i-- > 0 && past - i <= limits.past_stalls;) {
    out.begin_row();
    stall(attempt->past_stalls[i].found, attempt->past_stalls[i].lasted_us);
    text("how", attempt->past_stalls[i].how, limits.text / 2);
    out.end_object();
  }
  out.end_array();
  write_status_saved(out, attempt, limits);
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
  write_status_failure(out, facts.view, limits);
  writer.stalls();
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
