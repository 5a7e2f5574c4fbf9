// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/row_states.h"

#include <algorithm>
#include <chrono>

#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/event_json.h"
#include "supervisor/status/job_source.h"

namespace muster {

namespace {

// The attempt's workers are all gone, whether we saw it or not.
bool is_over(const JobView& view, const AttemptState& attempt) {
  const JobState& state = view.state;
  if (!view.live || state.end || &attempt != state.current()) return true;
  return state.phase == Phase::kWaiting || state.phase == Phase::kRestarting;
}

// Where all nodes are shown, a node's number is its place; an agent shows only itself.
const event::NodeSpan* span_of(const AttemptState& attempt, int node) {
  const auto at = static_cast<size_t>(node);
  if (at < attempt.nodes.size() && attempt.nodes[at].node == node) return &attempt.nodes[at];
  for (const event::NodeSpan& span : attempt.nodes) {
    if (span.node == node) return &span;
  }
  return nullptr;
}

bool node_is_gone(const JobState& state, const AttemptState& attempt, int node) {
  if (state.nodes.empty()) return false;
  const event::NodeSpan* span = span_of(attempt, node);
  if (span == nullptr) return false;
  const auto found = state.node_at.find(span->id);
  return found != state.node_at.end() && state.nodes[found->second].lost.has_value();
}

}  // namespace

JobView view_of(const JobSource& source) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {source.state(), source.live(), source.hosting(),
          std::chrono::duration_cast<std::chrono::microseconds>(now).count()};
}

int64_t unix_us(const JobState& state, int64_t mono_us) {
  const auto since = state.started.time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since).count() + mono_us;
}

std::string_view phase_name(const JobView& view) {
  if (!view.live) return "ended";
  switch (view.state.phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kWaiting:
      return "waiting";
    case Phase::kRunning:
      return stall_now(view) ? "stalled" : "running";
    case Phase::kStopping:
      return "stopping";
    case Phase::kRestarting:
      return "restarting";
    case Phase::kEnded:
      return "ended";
  }
  return "";
}

const event::StallFound* stall_now(const JobView& view) {
  const AttemptState* attempt = view.state.current();
  const bool runs = view.live && view.state.phase == Phase::kRunning;
  return runs && attempt && attempt->stall ? &*attempt->stall : nullptr;
}

std::optional<int64_t> restart_due_us(const JobView& view) {
  if (!view.live || view.state.phase != Phase::kRestarting) return std::nullopt;
  return unix_us(view.state, view.state.restart_due_us);
}

RankShown rank_shown(const JobView& view, const AttemptState& attempt, const RankState& rank) {
  switch (rank.phase) {
    case RankPhase::kPending:
      return RankShown::kPending;
    case RankPhase::kSpawnFailed:
      return RankShown::kSpawnFailed;
    case RankPhase::kRunning: {
      const bool lost = is_over(view, attempt) || node_is_gone(view.state, attempt, rank.node);
      return lost ? RankShown::kLost : RankShown::kRunning;
    }
    case RankPhase::kExited:
      break;
  }
  if (rank.stopped_for != StopReason::kNone) return RankShown::kStopped;
  return decode_wait_status(rank.wait_status).success() ? RankShown::kExited : RankShown::kFailed;
}

std::string_view name_of(RankShown shown) {
  switch (shown) {
    case RankShown::kPending:
      return "pending";
    case RankShown::kRunning:
      return "running";
    case RankShown::kExited:
      return "exited";
    case RankShown::kFailed:
      return "failed";
    case RankShown::kStopped:
      return "stopped";
    case RankShown::kSpawnFailed:
      return "spawn_failed";
    case RankShown::kLost:
      return "lost";
  }
  return "";
}

std::string_view attempt_state_name(const JobView& view, const AttemptState& attempt) {
  if (!is_over(view, attempt)) return "running";
  if (attempt.root_cause) return "failed";
  const JobState& state = view.state;
  if (&attempt != state.current()) return "stopped";
  if (!state.end) return view.live ? "stopped" : "lost";
  if (state.end->outcome != Outcome::kFailed) return outcome_name(state.end->outcome);
  // The job failed, but no rank did: nodes went and did not come back.
  return ranks_stopped_by_us(attempt).empty() ? "failed" : "stopped";
}

RankCounts count_ranks(const JobView& view, const AttemptState& attempt) {
  RankCounts counts;
  for (const RankState& rank : attempt.ranks)
    ++counts.of[static_cast<size_t>(rank_shown(view, attempt, rank))];
  return counts;
}

std::optional<int64_t> attempt_end_us(const JobView& view, const AttemptState& attempt) {
  if (!is_over(view, attempt)) return std::nullopt;
  int64_t last = 0;
  bool all_seen = true;
  for (const RankState& rank : attempt.ranks) {
    last = std::max(last, rank.ended_us);
    all_seen = all_seen && rank.phase != RankPhase::kRunning;
  }
  const bool current = &attempt == view.state.current();
  if (current && (last == 0 || !all_seen)) last = view.state.last_us;
  return last == 0 ? std::nullopt : std::optional(unix_us(view.state, last));
}

std::string_view host_of(const AttemptState& attempt, const RankState& rank) {
  const event::NodeSpan* span = span_of(attempt, rank.node);
  return span == nullptr ? std::string_view() : std::string_view(span->host);
}

}  // namespace muster
