// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/row_versions.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace muster {

namespace {

// One line for each event: a new one does not compile before it has its own.
struct Touching {
  const JobState& state;

  int current() const {
    const AttemptState* attempt = state.current();
    return attempt == nullptr ? -1 : attempt->attempt;
  }
  TouchedRows of_attempt(int attempt) const {
    TouchedRows touched;
    touched.job = true;
    touched.attempt = attempt;
    touched.attempt_row = true;
    return touched;
  }
  // The job's summary and the attempt's counts tell of every rank.
  TouchedRows of_rank(int attempt, int rank) const {
    TouchedRows touched = of_attempt(attempt);
    touched.rank = rank;
    return touched;
  }
  TouchedRows rank_alone(int attempt, int rank) const {
    TouchedRows touched;
    touched.attempt = attempt;
    touched.rank = rank;
    return touched;
  }
  // An attempt may be over now, and with it those of its ranks whose end nobody saw.
  TouchedRows of_phase(int attempt) const {
    TouchedRows touched = of_attempt(attempt);
    touched.unended_ranks = true;
    return touched;
  }
  TouchedRows everything(int attempt) const {
    TouchedRows touched = of_phase(attempt);
    touched.all_nodes = true;
    touched.all_ranks = true;
    return touched;
  }
  // What a node's coming or going means for its ranks is seen by those who show them.
  TouchedRows of_node(const std::string& id) const {
    TouchedRows touched = of_phase(current());
    touched.node_id = id;
    return touched;
  }

  TouchedRows operator()(const event::JobStarted&) const { return everything(current()); }
  TouchedRows operator()(const event::AttemptStarted& e) const { return everything(e.attempt); }
  TouchedRows operator()(const event::WorkerSpawned& e) const { return of_rank(e.attempt, e.rank); }
  TouchedRows operator()(const event::SpawnFailed& e) const { return of_rank(e.attempt, e.rank); }
  TouchedRows operator()(const event::FirstOutput& e) const {
    return rank_alone(e.attempt, e.rank);
  }
  TouchedRows operator()(const event::WorkerExited& e) const { return of_rank(e.attempt, e.rank); }
  TouchedRows operator()(const event::SignalSent& e) const { return of_rank(e.attempt, e.rank); }
  TouchedRows operator()(const event::SignalReceived&) const { return of_attempt(current()); }
  TouchedRows operator()(const event::StopOrdered&) const { return of_attempt(current()); }
  TouchedRows operator()(const event::RestartRequested& e) const { return of_attempt(e.attempt); }
  TouchedRows operator()(const event::FailureFound& e) const { return of_rank(e.attempt, e.rank); }
  TouchedRows operator()(const event::VictimsFound& e) const { return of_attempt(e.attempt); }
  TouchedRows operator()(const event::CollectivesFound& e) const { return of_attempt(e.attempt); }
  TouchedRows operator()(const event::StallFound& e) const { return of_attempt(e.attempt); }
  TouchedRows operator()(const event::StallOver& e) const { return of_attempt(e.attempt); }
  TouchedRows operator()(const event::EvidenceSaved& e) const { return of_attempt(e.attempt); }
  TouchedRows operator()(const event::RestartScheduled&) const { return of_phase(current()); }
  TouchedRows operator()(const event::RestartDenied& e) const { return of_attempt(e.attempt); }
  TouchedRows operator()(const event::LeftoverFound&) const { return of_attempt(current()); }
  TouchedRows operator()(const event::NodeJoined& e) const { return of_node(e.id); }
  TouchedRows operator()(const event::NodeLost& e) const { return of_node(e.id); }
  TouchedRows operator()(const event::NodesAwaited&) const { return of_phase(current()); }
  TouchedRows operator()(const event::Trouble&) const { return of_attempt(current()); }
  TouchedRows operator()(const event::JobEnded&) const { return everything(current()); }
};

// From the newest, since that is nearly always the one.
size_t place_of(const JobState& state, int attempt) {
  for (size_t i = state.attempts.size(); i-- > 0;) {
    if (state.attempts[i].attempt == attempt) return i;
  }
  return state.attempts.size();
}

}  // namespace

TouchedRows touched_rows(const EventBody& body, const JobState& state) {
  return std::visit(Touching{state}, body);
}

void RowVersions::reset(const JobState& state, int64_t version) {
  job_ = all_nodes_ = version;
  phase_ = state.phase;
  nodes_.clear();
  attempts_.clear();
  grow(state, version);
}

// Rows that are new are as new as their event.
void RowVersions::grow(const JobState& state, int64_t version) {
  nodes_.resize(state.nodes.size(), version);
  for (size_t i = attempts_.size(); i < state.attempts.size(); ++i) {
    attempts_.push_back(
        {version, version, std::vector<int64_t>(state.attempts[i].ranks.size(), version)});
  }
}

void RowVersions::note(const JobState& state, const EventBody& body, int64_t version) {
  grow(state, version);
  const TouchedRows touched = touched_rows(body, state);
  if (touched.job) job_ = version;
  if (touched.all_nodes) all_nodes_ = version;
  if (!touched.node_id.empty()) {
    const auto found = state.node_at.find(touched.node_id);
    if (found != state.node_at.end()) nodes_[found->second] = version;
  }
  if (touched.attempt >= 0) touch_attempt(state, touched, version);
  // An attempt of which some ends were not seen has ended when something else was last seen.
  const bool between = state.phase == Phase::kWaiting || state.phase == Phase::kRestarting ||
                       state.phase == Phase::kEnded;
  const bool changed = std::exchange(phase_, state.phase) != state.phase;
  if (attempts_.empty() || (!between && !changed)) return;
  attempts_.back().row = version;
  if (changed) touch_unended(state, attempts_.size() - 1, version);
}

void RowVersions::touch_attempt(const JobState& state, const TouchedRows& touched,
                                int64_t version) {
  const size_t at = place_of(state, touched.attempt);
  if (at == state.attempts.size()) return;
  if (touched.attempt_row) {
    attempts_[at].row = version;
    if (at > 0) attempts_[at - 1].row = version;
  }
  if (touched.unended_ranks) {
    touch_unended(state, at, version);
    if (at > 0) touch_unended(state, at - 1, version);
  }
  if (touched.all_ranks) {
    for (size_t i = 0; i < attempts_[at].ranks.size(); ++i)
      touch_rank(at, i, version);
  } else if (const RankState* rank = state.attempts[at].find(touched.rank)) {
    touch_rank(at, static_cast<size_t>(rank - state.attempts[at].ranks.data()), version);
  }
}

void RowVersions::touch_unended(const JobState& state, size_t attempt, int64_t version) {
  const std::vector<RankState>& ranks = state.attempts[attempt].ranks;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].phase == RankPhase::kRunning) touch_rank(attempt, i, version);
  }
}

void RowVersions::touch_rank(size_t attempt, size_t rank, int64_t version) {
  attempts_[attempt].ranks[rank] = version;
  attempts_[attempt].newest_rank = version;
}

RowVersions::Changes RowVersions::since(int64_t version) const {
  Changes changes;
  changes.job = job_ > version;
  changes.all_nodes = all_nodes_ > version;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i] > version) changes.nodes.push_back(i);
  }
  for (size_t i = 0; i < attempts_.size(); ++i) {
    const Attempt& attempt = attempts_[i];
    if (attempt.row > version) changes.attempts.push_back(i);
    if (attempt.newest_rank <= version) continue;
    for (size_t at = 0; at < attempt.ranks.size(); ++at) {
      if (attempt.ranks[at] > version) changes.ranks.emplace_back(i, at);
    }
  }
  return changes;
}

}  // namespace muster
