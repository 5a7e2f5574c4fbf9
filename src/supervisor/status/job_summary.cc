// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/job_summary.h"

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/report.h"

namespace muster {

namespace {

constexpr size_t kMaxSummary = 400;  // characters

std::string counted(int count, const char* one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

std::string of_attempt(const JobState& state, const AttemptState& attempt) {
  std::string text;
  if (attempt.node_count > 1) text += " on " + counted(attempt.node_count, "node");
  if (attempt.attempt == 0) return text;
  return text + " · attempt " + std::to_string(attempt.attempt) + ", " +
         std::to_string(state.restarts_used) + " of " + counted(state.job.max_restarts, "restart") +
         " used";
}

std::string running_text(const JobView& view, const AttemptState& attempt) {
  const RankCounts counts = count_ranks(view, attempt);
  const int all = static_cast<int>(attempt.ranks.size());
  const int running = counts[RankShown::kRunning];
  std::string text = running == all ? counted(all, "rank") + (all == 1 ? " runs" : " run")
                                    : std::to_string(running) + " of " + counted(all, "rank") +
                                          (running == 1 ? " runs" : " run");
  const int finished = counts[RankShown::kExited];
  if (finished > 0) text += ", " + std::to_string(finished) + " finished";
  return text + of_attempt(view.state, attempt);
}

std::string failure_text(const JobState& state, const event::FailureFound& failure) {
  const std::string host = failure.host.empty() ? state.job.host : failure.host;
  const std::string who =
      failure.rank < 0 ? host : "rank " + std::to_string(failure.rank) + " on " + host;
  return who + ": " + failure.message;
}

// The first that failed by itself, while the evidence is still being gathered.
std::string first_failure_text(const JobView& view, const AttemptState& attempt) {
  if (attempt.root_cause) return failure_text(view.state, *attempt.root_cause);
  for (int dead : attempt.death_order) {
    const RankState* rank = attempt.find(dead);
    if (rank == nullptr) continue;
    const RankShown shown = rank_shown(view, attempt, *rank);
    if (shown != RankShown::kFailed && shown != RankShown::kSpawnFailed) continue;
    const std::string who = "rank " + std::to_string(dead) + " on " + attempt.host_of(dead) + ": ";
    if (shown == RankShown::kSpawnFailed) return who + "could not be started";
    return who + describe_end(decode_wait_status(rank->wait_status));
  }
  return "";
}

std::string stopping_text(const JobView& view) {
  const JobState& state = view.state;
  if (state.stop_signal) return "stopping: " + describe_signal(*state.stop_signal);
  if (state.stop_order) return "stopping: " + state.stop_order->why;
  const AttemptState* attempt = state.current();
  const std::string why = attempt ? first_failure_text(view, *attempt) : "";
  return why.empty() ? "stopping" : "stopping: " + why;
}

std::string restarting_text(const JobState& state) {
  std::string text = "restarting (" + std::to_string(state.restarts_used) + " of " +
                     counted(state.job.max_restarts, "restart") + " used)";
  const AttemptState* attempt = state.current();
  if (attempt && attempt->root_cause) text += " after " + failure_text(state, *attempt->root_cause);
  if (state.restart_delay_us > 0) text += ", put off for " + duration_text(state.restart_delay_us);
  return text;
}

std::string killed_text(const JobView& view) {
  const AttemptState* attempt = view.state.current();
  const std::string text = "muster was killed, or its machine went down";
  if (!attempt) return text + ", before any rank was started";
  const int lost = count_ranks(view, *attempt)[RankShown::kLost];
  return text + " while " + counted(lost, "rank") + " ran";
}

std::string text_of(const JobView& view) {
  const JobState& state = view.state;
  const AttemptState* attempt = state.current();
  if (state.end) return end_line(state);
  if (!view.live) return killed_text(view);
  switch (state.phase) {
    case Phase::kWaiting:
      return state.awaited ? state.awaited->text : "waiting for nodes";
    case Phase::kStopping:
      return stopping_text(view);
    case Phase::kRestarting:
      return restarting_text(state);
    case Phase::kRunning:
      if (const event::StallFound* stall = stall_now(view)) return "stalled: " + stall->text;
      break;
    case Phase::kStarting:
    case Phase::kEnded:
      if (!attempt) return "starting " + counted(state.job.local_world_size, "rank");
      return "starting: " + running_text(view, *attempt);
  }
  return attempt ? running_text(view, *attempt) : "";
}

}  // namespace

std::string job_summary(const JobView& view) {
  return cut_line(clean_line(text_of(view)), kMaxSummary);
}

}  // namespace muster
