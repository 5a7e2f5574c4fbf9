// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/state.h"

#include <signal.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace muster {

namespace {

// A damaged events.jsonl must not make us allocate without bound.
constexpr size_t kMaxRanks = 1'000'000;
constexpr size_t kMaxNodes = 100'000;
constexpr int64_t kMaxDelayMs = int64_t{1000} * 60 * 60 * 24 * 365;

AttemptState* find_attempt(JobState& state, int attempt) {
  auto found = std::find_if(state.attempts.rbegin(), state.attempts.rend(),
                            [&](const AttemptState& a) { return a.attempt == attempt; });
  return found == state.attempts.rend() ? nullptr : &*found;
}

RankState* find_rank(JobState& state, int attempt, int rank) {
  AttemptState* in = find_attempt(state, attempt);
  return in == nullptr ? nullptr : in->find(rank);
}

NodeState* find_node(JobState& state, const std::string& id) {
  const auto found = state.node_at.find(id);
  return found == state.node_at.end() ? nullptr : &state.nodes[found->second];
}

// The ranks of `nodes`, as far as they are contiguous.
std::vector<RankState> ranks_of(const std::vector<event::NodeSpan>& nodes) {
  std::vector<RankState> ranks;
  for (const event::NodeSpan& span : nodes) {
    if (!ranks.empty() && span.first_rank != ranks.back().rank + 1) break;
    for (int i = 0; i < span.workers && ranks.size() < kMaxRanks; ++i) {
      RankState& rank = ranks.emplace_back();
      rank.rank = span.first_rank + i;
      rank.local_rank = i;
      rank.node = span.node;
    }
  }
  return ranks;
}

template <typename T>
void keep_last(std::vector<T>& list, std::type_identity_t<T> item, size_t most) {
  if (list.size() >= most) list.erase(list.begin());
  list.push_back(std::move(item));
}

struct Reducer {
  JobState& state;
  const Event& event;

  void note_all_begun(int attempt) {
    const AttemptState& in = *find_attempt(state, attempt);
    bool all = in.begun == static_cast<int>(in.ranks.size());
    if (all && state.phase == Phase::kStarting) state.phase = Phase::kRunning;
  }

  void operator()(const event::JobStarted& e) {
    state.job = e;
    state.started = std::chrono::floor<std::chrono::microseconds>(event.time);
    state.phase = Phase::kStarting;
  }

  void operator()(const event::AttemptStarted& e) {
    state.master_addr = e.master_addr;
    state.master_port = e.master_port;
    state.phase = Phase::kStarting;
    state.awaited.reset();
    state.job.world_size = e.world_size;
    // A node that joins later has not seen the restarts before.
    state.restarts_used = std::max(state.restarts_used, e.restart_count);
    AttemptState attempt;
    attempt.attempt = e.attempt;
    attempt.restart_count = e.restart_count;
    attempt.node = e.node;
    attempt.node_count = e.node_count;
    attempt.world_size = e.world_size;
    attempt.started_us = event.mono_us;
    attempt.nodes = e.nodes;
    attempt.ranks = ranks_of(e.nodes);
    state.attempts.push_back(std::move(attempt));
  }

  void operator()(const event::WorkerSpawned& e) {
    RankState* rank = find_rank(state, e.attempt, e.rank);
    if (!rank || rank->phase != RankPhase::kPending) return;
    rank->pid = e.pid;
    rank->phase = RankPhase::kRunning;
    rank->started_us = event.mono_us;
    ++find_attempt(state, e.attempt)->begun;
    note_all_begun(e.attempt);
  }

  void operator()(const event::SpawnFailed& e) {
    RankState* rank = find_rank(state, e.attempt, e.rank);
    if (!rank || rank->phase != RankPhase::kPending) return;
    rank->phase = RankPhase::kSpawnFailed;
    rank->ended_us = event.mono_us;
    ++find_attempt(state, e.attempt)->begun;
    find_attempt(state, e.attempt)->death_order.push_back(e.rank);
  }

  void operator()(const event::FirstOutput& e) {
    RankState* rank = find_rank(state, e.attempt, e.rank);
    if (!rank) return;
    (e.stream == Stream::kStdout ? rank->wrote_stdout : rank->wrote_stderr) = true;
  }

  void operator()(const event::WorkerExited& e) {
    RankState* rank = find_rank(state, e.attempt, e.rank);
    if (!rank || rank->phase != RankPhase::kRunning) return;
    rank->phase = RankPhase::kExited;
    rank->wait_status = e.wait_status;
    rank->max_rss_kib = e.max_rss_kib;
    rank->ended_us = event.mono_us;
    find_attempt(state, e.attempt)->death_order.push_back(e.rank);
  }

  void operator()(const event::SignalSent& e) {
    if (e.reason == StopReason::kNone) return;        // forwarded
    bool ending = e.reason == StopReason::kFinished;  // only descendants of finished workers
    if (!ending && state.phase != Phase::kEnded) state.phase = Phase::kStopping;
    RankState* rank = find_rank(state, e.attempt, e.rank);
    if (!rank || rank->phase != RankPhase::kRunning) return;
    if (rank->stopped_for == StopReason::kNone) rank->stopped_for = e.reason;
    rank->stop_signal = e.signal;
  }

  void operator()(const event::SignalReceived& e) {
    if (e.forwarded) return;
    if (!state.stop_signal) state.stop_signal = e;
    if (e.signal == SIGINT) ++state.interrupts;
  }

  void operator()(const event::StopOrdered& e) {
    if (state.phase != Phase::kEnded) state.phase = Phase::kStopping;
    if (e.reason == StopReason::kSignal && !state.stop_order) state.stop_order = e;
    AttemptState* attempt = find_attempt(state, e.attempt);
    if (e.reason == StopReason::kRestart && attempt && attempt->restart_asked_by.empty()) {
      attempt->restart_asked_by = e.why;
    }
  }

  void operator()(const event::RestartRequested& e) {
    if (AttemptState* attempt = find_attempt(state, e.attempt)) {
      attempt->restart_asked_by = e.host.empty() ? e.who : e.who + " on " + e.host;
    }
  }

  void operator()(const event::FailureFound& e) {
    AttemptState* attempt = find_attempt(state, e.attempt);
    if (!attempt) return;
    if (attempt->root_cause) {
      attempt->other_causes.push_back(e);
    } else {
      attempt->root_cause = e;
    }
  }

  void operator()(const event::VictimsFound& e) {
    if (AttemptState* attempt = find_attempt(state, e.attempt)) attempt->victims = e.groups;
  }

  void operator()(const event::CollectivesFound& e) {
    if (AttemptState* attempt = find_attempt(state, e.attempt)) attempt->collectives = e;
  }

  void operator()(const event::StallFound& e) {
    AttemptState* attempt = find_attempt(state, e.attempt);
    if (!attempt) return;
    if (attempt->stall) keep_last(attempt->past_stalls, {*attempt->stall, -1, ""}, kMaxPastStalls);
    attempt->stall = e;
  }

  void operator()(const event::StallOver& e) {
    AttemptState* attempt = find_attempt(state, e.attempt);
    if (!attempt || !attempt->stall) return;
    keep_last(attempt->past_stalls, {*attempt->stall, e.lasted_us, e.how}, kMaxPastStalls);
    attempt->stall.reset();
  }

  void operator()(const event::EvidenceSaved& e) {
    if (AttemptState* attempt = find_attempt(state, e.attempt))
      keep_last(attempt->saved, e, kMaxEvidenceSaved);
  }

  void operator()(const event::NodeJoined& e) {
    NodeState* known = find_node(state, e.id);
    if (known) {
      *known = NodeState{e, event.mono_us, std::nullopt};
    } else if (state.nodes.size() < kMaxNodes) {
      state.node_at.emplace(e.id, state.nodes.size());
      state.nodes.push_back({e, event.mono_us, std::nullopt});
    }
  }

  void operator()(const event::NodeLost& e) {
    if (NodeState* node = find_node(state, e.id)) node->lost = e;
  }

  void operator()(const event::NodesAwaited& e) {
    state.awaited = e;
    state.phase = Phase::kWaiting;
  }

  void operator()(const event::RestartScheduled& e) {
    state.restarts_used = e.used;
    state.restart_delay_us = std::clamp<int64_t>(e.delay_ms, 0, kMaxDelayMs) * 1000;
    state.restart_due_us = event.mono_us + state.restart_delay_us;
    state.phase = Phase::kRestarting;
  }

  void operator()(const event::RestartDenied& e) {
    AttemptState* attempt = state.current();
    if (attempt && attempt->attempt == e.attempt) attempt->no_restart = e.reason;
  }

  void operator()(const event::LeftoverFound& e) { state.leftovers.push_back(e); }
  void operator()(const event::Trouble& e) { state.troubles.push_back(e); }

  void operator()(const event::JobEnded& e) {
    state.end = e;
    state.phase = Phase::kEnded;
  }
};

}  // namespace

const RankState* AttemptState::find(int rank) const {
  if (ranks.empty() || rank < ranks.front().rank || rank > ranks.back().rank) return nullptr;
  return &ranks[static_cast<size_t>(rank - ranks.front().rank)];
}

RankState* AttemptState::find(int rank) {
  return const_cast<RankState*>(std::as_const(*this).find(rank));
}

std::string AttemptState::host_of(int rank) const {
  for (const event::NodeSpan& span : nodes) {
    if (rank >= span.first_rank && rank < span.first_rank + span.workers) return span.host;
  }
  return "";
}

void apply(JobState& state, const Event& event) {
  state.last_us = std::max(state.last_us, event.mono_us);
  std::visit(Reducer{state, event}, event.body);
}

std::vector<const RankState*> ranks_stopped_by_us(const AttemptState& attempt) {
  std::vector<const RankState*> stopped;
  // One that hung is stopped too, and no victim.
  const int guilty = attempt.root_cause ? attempt.root_cause->rank : -1;
  for (const RankState& rank : attempt.ranks) {
    bool ended = rank.phase == RankPhase::kExited || rank.phase == RankPhase::kRunning;
    if (ended && rank.rank != guilty && rank.stopped_for != StopReason::kNone)
      stopped.push_back(&rank);
  }
  return stopped;
}

}  // namespace muster
