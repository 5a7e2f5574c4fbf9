// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <algorithm>

#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/duration_text.h"
#include "supervisor/job/rank_ranges.h"
#include "supervisor/job/report.h"

namespace muster {

namespace {

constexpr size_t kMaxLine = 200;
// Of one that says where a rank is: the calls of the program come after those that it waits in.
constexpr size_t kMaxStallLine = 320;

// A loop's timer may fire this much before the clock of the events says so.
constexpr int64_t kTimerSlackUs = 100'000;

// Where a rank runs, if that needs saying.
std::string on_host(const AttemptState& attempt, int rank) {
  return attempt.node_count > 1 ? " on " + clean_line(attempt.host_of(rank)) : "";
}

std::string nodes_text(int min, int max) {
  if (max == 1) return "1 node";
  return (min < max ? std::to_string(min) + ":" : "") + std::to_string(max) + " nodes";
}

int count_running(const AttemptState& attempt) {
  return static_cast<int>(
      std::count_if(attempt.ranks.begin(), attempt.ranks.end(),
                    [](const RankState& rank) { return rank.phase == RankPhase::kRunning; }));
}

bool runs_here(const AttemptState& attempt) {
  return std::any_of(attempt.ranks.begin(), attempt.ranks.end(), [&](const RankState& rank) {
    return rank.node == attempt.node && rank.phase == RankPhase::kRunning;
  });
}

std::string stopping_text(const AttemptState& attempt) {
  int others = count_running(attempt);
  if (others == 0) return "";
  return "; stopping " + std::to_string(others) + (others == 1 ? " other" : " others");
}

// Only the first failure of an attempt stops the others.
bool first_failure(const AttemptState& attempt) {
  int failed = 0;
  for (int dead : attempt.death_order) {
    const RankState& rank = *attempt.find(dead);
    bool success =
        rank.phase == RankPhase::kExited && decode_wait_status(rank.wait_status).success();
    failed += success ? 0 : 1;
  }
  return failed == 1;
}

struct LiveLine {
  const JobState& state;
  using Line = std::optional<std::string>;

  template <typename E>
  Line operator()(const E&) const {
    return std::nullopt;
  }

  Line operator()(const event::JobStarted& e) const {
    std::string line =
        "run " + clean_line(e.run_id) + " · " + nodes_text(e.min_nodes, e.max_nodes) + " · " +
        std::to_string(e.local_world_size) + (e.local_world_size == 1 ? " worker" : " workers");
    if (e.max_nodes > 1) line += " here";
    if (!e.log_dir.empty()) line += " · logs " + clean_line(e.log_dir);
    return line;
  }

  Line operator()(const event::AttemptStarted& e) const {
    const AttemptState* attempt = state.current();
    if (state.job.max_nodes == 1 || !attempt) return std::nullopt;
    std::vector<int> ranks;
    for (const RankState& rank : attempt->ranks) {
      if (rank.node == e.node) ranks.push_back(rank.rank);
    }
    return "attempt " + std::to_string(e.attempt) + " · node " + std::to_string(e.node) + " of " +
           std::to_string(e.node_count) + " · " + rank_ranges(ranks) + " of " +
           std::to_string(e.world_size) + " · store " + clean_line(e.master_addr) + ":" +
           std::to_string(e.master_port);
  }

  Line operator()(const event::StopOrdered& e) const {
    const AttemptState* attempt = state.current();
    std::vector<int> running;
    for (const RankState& rank : attempt ? attempt->ranks : std::vector<RankState>()) {
      if (rank.phase == RankPhase::kRunning && rank.node == attempt->node) {
        running.push_back(rank.rank);
      }
    }
    // Whoever was signalled here has said so already.
    const bool ours = e.reason == StopReason::kSignal && state.stop_signal;
    if (running.empty() || ours) return std::nullopt;
    return clean_line(e.why) + "; stopping " + rank_ranges(running);
  }

  Line operator()(const event::RestartRequested& e) const {
    // With several nodes the coordinator's order says it.
    const AttemptState* attempt = state.current();
    if (state.job.max_nodes > 1 || !attempt) return std::nullopt;
    const int running = count_running(*attempt);
    if (running == 0) return "restarting at once: asked for by " + clean_line(e.who);
    return "restarting: asked for by " + clean_line(e.who) + "; stopping " +
           std::to_string(running) + (running == 1 ? " worker" : " workers");
  }

  Line operator()(const event::StallFound& e) const { return "stalled: " + clean_line(e.text); }

  Line operator()(const event::StallOver& e) const {
    return "no longer stalled, after " + duration_text(e.lasted_us) + ": " + clean_line(e.how);
  }

  Line operator()(const event::EvidenceSaved& e) const {
    std::string line = "stacks of the workers: ";
    // Other nodes say their own.
    if (!e.host.empty() && e.host != state.job.host) return std::nullopt;
    line += e.folder.empty() ? "not written" : clean_line(e.folder);
    // Of a stall that nobody is suspected of yet the next line says it.
    const AttemptState* attempt = state.current();
    const bool open = attempt && attempt->stall && attempt->stall->suspects.empty();
    for (const std::string& group : open ? std::vector<std::string>() : e.groups) {
      if (group.find(" differ") != std::string::npos)
        line += "; " + cut_line(clean_line(group), kMaxLine);
    }
    if (!e.trouble.empty()) line += " (" + clean_line(e.trouble) + ")";
    return line;
  }

  Line operator()(const event::NodesAwaited& e) const { return clean_line(e.text); }

  Line operator()(const event::NodeLost& e) const { return clean_line(e.message); }

  Line operator()(const event::NodeJoined& e) const {
    // Before the start the line about who is awaited says it.
    if (!state.current()) return std::nullopt;
    return clean_line(e.host) + " joined with " + std::to_string(e.workers) +
           (e.workers == 1 ? " worker" : " workers") + (e.spare ? ", as a spare" : "");
  }

  Line operator()(const event::WorkerExited& e) const {
    const AttemptState* attempt = state.current();
    if (!attempt || attempt->attempt != e.attempt) return std::nullopt;
    const RankState* rank = attempt->find(e.rank);
    WaitStatus status = decode_wait_status(e.wait_status);
    if (rank == nullptr || status.success()) return std::nullopt;
    if (rank->stopped_for != StopReason::kNone) return std::nullopt;  // it obeyed
    std::string line = rank_ranges({e.rank}) + " (pid " + std::to_string(e.pid) + ")" +
                       on_host(*attempt, e.rank) + " " + describe_end(status) + " after " +
                       duration_text(rank->ended_us - rank->started_us);
    if (rank->node == attempt->node && first_failure(*attempt)) line += stopping_text(*attempt);
    return line;
  }

  // The report says it, unless that is yet to come: others are still being stopped.
  Line operator()(const event::FailureFound& e) const {
    const AttemptState* attempt = state.current();
    if (!attempt || attempt->attempt != e.attempt || !attempt->other_causes.empty()) return {};
    if (e.rank < 0 || !runs_here(*attempt)) return std::nullopt;
    const std::string host = attempt->node_count > 1 ? " on " + clean_line(e.host) : "";
    return "cause: " + rank_ranges({e.rank}) + host + ": " + clean_line(e.message);
  }

  Line operator()(const event::SpawnFailed& e) const {
    const AttemptState* attempt = state.current();
    if (!attempt || attempt->attempt != e.attempt) return std::nullopt;
    std::string line = rank_ranges({e.rank}) + on_host(*attempt, e.rank) +
                       " could not be started: " + clean_line(e.message);
    if (first_failure(*attempt)) line += stopping_text(*attempt);
    return line;
  }

  Line operator()(const event::SignalReceived& e) const {
    if (e.forwarded) return signal_name(e.signal) + " passed on to the workers";
    const AttemptState* attempt = state.current();
    const int running = attempt ? count_running(*attempt) : 0;
    const bool interrupt = e.signal == SIGINT;
    const bool again = interrupt && state.interrupts > 1;
    std::string line = "got " + describe_signal(e) + (again ? " again" : "");
    if (running == 0) return line + "; no worker is running";
    line += (again ? "; killing " : "; stopping ") + std::to_string(running);
    line += running == 1 ? " worker" : " workers";
    return interrupt && !again ? line + " (once more kills at once)" : line;
  }

  Line operator()(const event::RestartScheduled& e) const {
    const AttemptState* attempt = state.current();
    if (!attempt) return std::nullopt;  // a spare: it does not concern it
    const std::string later = e.delay_ms > 0 ? " in " + duration_text(e.delay_ms * 1000) : "";
    std::string line = "restarting" + later + " (attempt " + std::to_string(e.used + 1) + " of " +
                       std::to_string(e.max + 1) + ")";
    // A node that was away hears of attempts that it had no part in.
    const bool ours = attempt->attempt + 1 == e.next_attempt;
    if (!e.charged) {
      const bool asked = ours && !attempt->restart_asked_by.empty() && !attempt->root_cause;
      line = std::string("starting again ") +
             (asked ? "as asked" : "with the nodes that are here") + " (" + std::to_string(e.used) +
             " of " + std::to_string(e.max) + " restarts used)";
    }
    if (ours && attempt->root_cause) {
      const event::FailureFound& root = *attempt->root_cause;
      line += " after ";
      if (root.rank >= 0) {
        line += rank_ranges({root.rank});
        if (attempt->node_count > 1) line += " on " + clean_line(root.host);
        line += ": ";
      }
      line += root.message;
    }
    return line;
  }

  Line operator()(const event::SignalSent& e) const {
    // Whoever asked for it by a second Ctrl-C knows.
    const bool unasked = e.reason != StopReason::kFinished && state.interrupts < 2;
    const AttemptState* attempt = state.current();
    if (e.signal != SIGKILL || e.rank < 0 || !unasked || !attempt) return std::nullopt;
    std::vector<int> running;
    int told = 0;
    for (const RankState& rank : attempt->ranks) {
      if (rank.node != attempt->node) continue;  // its own muster says it
      if (rank.stop_signal == SIGKILL && rank.rank != e.rank) ++told;
      if (rank.phase == RankPhase::kRunning) running.push_back(rank.rank);
    }
    // All that still run are killed in one go: the first of them stands for all.
    if (told > 0 || std::count(running.begin(), running.end(), e.rank) == 0) return std::nullopt;
    if (running.size() > 1) return rank_ranges(running) + " did not stop; killing them";
    return rank_ranges(running) + " (pid " + std::to_string(e.pid) + ") did not stop; killing it";
  }

  Line operator()(const event::Trouble& e) const {
    return e.subject.empty() ? clean_line(e.message) : e.subject + ": " + clean_line(e.message);
  }
};

}  // namespace

std::optional<std::string> live_line(const JobState& after, const Event& event) {
  std::optional<std::string> line = std::visit(LiveLine{after}, event.body);
  // Some end in a path, which is of no use when cut.
  const bool path = std::holds_alternative<event::JobStarted>(event.body) ||
                    std::holds_alternative<event::EvidenceSaved>(event.body);
  const bool stall = std::holds_alternative<event::StallFound>(event.body);
  if (line && !path) line = cut_line(*line, stall ? kMaxStallLine : kMaxLine);
  return line;
}

std::optional<std::string> uneven_end_line(const JobState& state, int64_t now_us) {
  const AttemptState* attempt = state.current();
  if (!attempt || state.phase != Phase::kRunning) return std::nullopt;
  std::vector<int> finished, running;
  int64_t latest = 0;
  for (const RankState& rank : attempt->ranks) {
    if (rank.phase == RankPhase::kRunning) running.push_back(rank.rank);
    if (rank.phase != RankPhase::kExited) continue;
    if (!decode_wait_status(rank.wait_status).success()) return std::nullopt;
    finished.push_back(rank.rank);
    latest = std::max(latest, rank.ended_us);
  }
  if (finished.empty() || running.empty() || now_us - latest < kUnevenEndUs - kTimerSlackUs) {
    return std::nullopt;
  }
  return cut_line(rank_ranges(finished) + " finished, " + rank_ranges(running) +
                      " still running after " + duration_text(now_us - latest),
                  kMaxLine);
}

}  // namespace muster
