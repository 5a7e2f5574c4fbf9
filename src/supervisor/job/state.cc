// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/state.h"

#include <signal.h>

#include <algorithm>

namespace muster {

namespace {

// A damaged events.jsonl must not make us allocate without bound.
constexpr int kMaxLocalRanks = 65536;

AttemptState* find_attempt(JobState& state, int attempt) {
  auto found = std::find_if(state.attempts.rbegin(), state.attempts.rend(),
                            [&](const AttemptState& a) { return a.attempt == attempt; });
  return found == state.attempts.rend() ? nullptr : &*found;
}

RankState* find_rank(JobState& state, int attempt, int rank) {
  AttemptState* in = find_attempt(state, attempt);
  if (!in) return nullptr;
  auto found = std::find_if(in->ranks.begin(), in->ranks.end(),
                            [&](const RankState& r) { return r.rank == rank; });
  return found == in->ranks.end() ? nullptr : &*found;
}

// By local rank: before its spawn a worker's global rank is only assumed.
RankState* find_local(JobState& state, int attempt, int local_rank) {
  AttemptState* in = find_attempt(state, attempt);
  if (!in || local_rank < 0 || local_rank >= static_cast<int>(in->ranks.size())) return nullptr;
  return &in->ranks[static_cast<size_t>(local_rank)];
}

struct Reducer {
  JobState& state;
  const Event& event;

  void operator()(const event::JobStarted& e) {
    state.job = e;
    state.started = std::chrono::floor<std::chrono::microseconds>(event.time);
    state.phase = Phase::kStarting;
  }

  void operator()(const event::AttemptStarted& e) {
    state.master_addr = e.master_addr;
    state.master_port = e.master_port;
    state.phase = Phase::kStarting;
    AttemptState attempt;
    attempt.attempt = e.attempt;
    attempt.started_us = event.mono_us;
    int count = std::clamp(state.job.local_world_size, 0, kMaxLocalRanks);
    attempt.ranks.resize(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      attempt.ranks[static_cast<size_t>(i)].rank = i;
      attempt.ranks[static_cast<size_t>(i)].local_rank = i;
    }
    state.attempts.push_back(std::move(attempt));
  }

  void operator()(const event::WorkerSpawned& e) {
    RankState* rank = find_local(state, e.attempt, e.local_rank);
    if (!rank) return;
    rank->rank = e.rank;
    rank->pid = e.pid;
    rank->phase = RankPhase::kRunning;
    rank->started_us = event.mono_us;
    const AttemptState& attempt = *find_attempt(state, e.attempt);
    bool all = std::none_of(attempt.ranks.begin(), attempt.ranks.end(),
                            [](const RankState& r) { return r.phase == RankPhase::kPending; });
    if (all && state.phase == Phase::kStarting) state.phase = Phase::kRunning;
  }

  void operator()(const event::SpawnFailed& e) {
    RankState* rank = find_local(state, e.attempt, e.local_rank);
    if (!rank) return;
    rank->rank = e.rank;
    rank->phase = RankPhase::kSpawnFailed;
    rank->ended_us = event.mono_us;
    find_attempt(state, e.attempt)->death_order.push_back(e.local_rank);
  }

  void operator()(const event::FirstOutput& e) {
    RankState* rank = find_rank(state, e.attempt, e.rank);
    if (!rank) return;
    (e.stream == Stream::kStdout ? rank->wrote_stdout : rank->wrote_stderr) = true;
  }

  void operator()(const event::WorkerExited& e) {
    RankState* rank = find_local(state, e.attempt, e.local_rank);
    if (!rank || rank->phase != RankPhase::kRunning) return;
    rank->phase = RankPhase::kExited;
    rank->wait_status = e.wait_status;
    rank->max_rss_kib = e.max_rss_kib;
    rank->ended_us = event.mono_us;
    find_attempt(state, e.attempt)->death_order.push_back(e.local_rank);
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

  void operator()(const event::FailureFound& e) {
    AttemptState* attempt = find_attempt(state, e.attempt);
    if (!attempt) return;
    if (attempt->root_cause) {
      attempt->other_causes.push_back(e);
    } else {
      attempt->root_cause = e;
    }
  }

  void operator()(const event::RestartScheduled& e) {
    state.restarts_used = e.used;
    state.phase = Phase::kRestarting;
  }

  void operator()(const event::LeftoverFound& e) { state.leftovers.push_back(e); }
  void operator()(const event::Trouble& e) { state.troubles.push_back(e); }

  void operator()(const event::JobEnded& e) {
    state.end = e;
    state.phase = Phase::kEnded;
  }
};

}  // namespace

void apply(JobState& state, const Event& event) {
  state.last_us = std::max(state.last_us, event.mono_us);
  std::visit(Reducer{state, event}, event.body);
}

std::vector<const RankState*> ranks_stopped_by_us(const AttemptState& attempt) {
  std::vector<const RankState*> stopped;
  for (const RankState& rank : attempt.ranks) {
    bool ended = rank.phase == RankPhase::kExited || rank.phase == RankPhase::kRunning;
    if (ended && rank.stopped_for != StopReason::kNone) stopped.push_back(&rank);
  }
  return stopped;
}

}  // namespace muster
