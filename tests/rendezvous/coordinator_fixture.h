// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/rendezvous/coordinator.h"

namespace muster {

// A coordinator on a clock ticked by hand; "h" is the node it lives in. Each call keeps only the
// actions that it caused.
struct Round {
  using Time = Coordinator::Time;
  using Lost = Coordinator::Lost;
  using Phase = Coordinator::Phase;

  explicit Round(int min, int max, int max_restarts = 0) {
    settings.terms.min_nodes = min;
    settings.terms.max_nodes = max;
    settings.terms.max_restarts = max_restarts;
    settings.host_id = "h";
    settings.endpoint_host = "node-h";
    settings.fallback_address = "192.0.2.1";
    settings.store_port = 29500;
  }

  // The first input makes the coordinator, so that a test may change the settings before.
  Coordinator& coordinator() {
    if (!made_) made_ = std::make_unique<Coordinator>(settings, now);
    return *made_;
  }

  NodeFacts facts(const std::string& id, int workers = 2) const {
    NodeFacts facts;
    facts.id = id;
    facts.host = "node-" + id;
    facts.pid = 100;
    facts.workers = workers;
    facts.terms = settings.terms;
    return facts;
  }

  void join(const NodeFacts& facts) {
    const bool host = facts.id == settings.host_id;
    coordinator().join(facts, host ? "" : "10.0.0.9", host ? "" : "10.0.0.1", now);
    keep();
  }
  void join(const std::string& id, int workers = 2) { join(facts(id, workers)); }
  void join_with_rank(const std::string& id, int rank) {
    NodeFacts with = facts(id);
    with.node_rank = rank;
    join(with);
  }
  // Comes (back) and still has workers of an attempt.
  void join_with_workers(const std::string& id, int attempt) {
    NodeFacts with = facts(id);
    with.attempt = attempt;
    join(with);
  }
  void lose(const std::string& id, Lost how = Lost::kClosed) {
    coordinator().lost(id, how, now);
    keep();
  }
  static event::FailureFound failure(int rank, int exit_code = 3) {
    event::FailureFound found;
    found.rank = rank;
    found.kind = "exit_code";
    found.exit_code = exit_code;
    found.message = "exited with code " + std::to_string(exit_code);
    return found;
  }
  void hang(int rank, bool can_heal = true) {
    event::FailureFound found = failure(rank, 1);
    found.attempt = coordinator().attempt();
    found.kind = "hung";
    found.can_heal = can_heal;
    coordinator().hung(found, now);
    keep();
  }
  void fail(const std::string& id, int rank, int exit_code = 3) {
    coordinator().failed(id, {coordinator().attempt(), failure(rank, exit_code)}, now);
    keep();
  }
  void settle(const std::string& id, NodeOutcome outcome) {
    coordinator().settled(id, outcome, now);
    keep();
  }
  // Its stop takes long; a rank has failed there, or none (-1).
  void linger(const std::string& id, int rank = -1) {
    NodeOutcome so_far;
    so_far.attempt = coordinator().attempt();
    so_far.early = true;
    if (rank >= 0) so_far.root = failure(rank);
    coordinator().ending(id, so_far, now);
    keep();
  }
  void settle_failed(const std::string& id, int rank, int exit_code = 3) {
    NodeOutcome outcome;
    outcome.attempt = coordinator().attempt();
    outcome.root = failure(rank, exit_code);
    settle(id, outcome);
  }
  void settle_stopped(const std::string& id) {
    NodeOutcome outcome;
    outcome.attempt = coordinator().attempt();
    settle(id, outcome);
  }
  void complete(const std::string& id) {
    NodeOutcome outcome;
    outcome.attempt = coordinator().attempt();
    outcome.complete = true;
    settle(id, outcome);
  }
  void signal(const std::string& id, int signal = 15, bool kill = false) {
    event::SignalReceived received;
    received.signal = signal;
    coordinator().stop_requested(id, received, kill, now);
    keep();
  }
  std::string restart(const std::string& id) {
    std::string refusal = coordinator().restart_requested(id, "alice", now);
    keep();
    return refusal;
  }
  void goodbye(const std::string& id) {
    coordinator().goodbye(id, now);
    keep();
  }
  void pass(std::chrono::milliseconds time) {
    coordinator();
    now += time;
    coordinator().time(now);
    keep();
  }

  // What the last input caused.
  template <class A>
  std::vector<A> all() const {
    std::vector<A> found;
    for (const Action& action : last) {
      if (const A* one = std::get_if<A>(&action)) found.push_back(*one);
    }
    return found;
  }
  // For whom, as "ab".
  template <class A>
  std::string ids() const {
    std::string text;
    for (const A& one : all<A>())
      text += one.id;
    return text;
  }
  template <class E>
  std::vector<E> recorded() const {
    std::vector<E> found;
    for (const action::Record& record : all<action::Record>()) {
      if (const E* one = std::get_if<E>(&record.event)) found.push_back(*one);
    }
    return found;
  }
  Assignment assignment_of(const std::string& id) const {
    for (const action::Assign& assign : all<action::Assign>()) {
      if (assign.id == id) return assign.assignment;
    }
    Assignment none;
    none.attempt = -1;
    return none;
  }
  std::string said() const {
    std::string text;
    for (const action::Say& say : all<action::Say>())
      text += say.line + "\n";
    return text;
  }
  bool contains(const std::string& text, const std::string& part) const {
    return text.find(part) != std::string::npos;
  }
  JobEnd end_of(const std::string& id) const {
    for (const action::End& end : all<action::End>()) {
      if (end.id == id) return end.end;
    }
    return {Outcome::kSucceeded, -1, "no end"};
  }

  CoordinatorSettings settings;
  Time now{std::chrono::hours(1)};
  std::vector<Action> last;

 private:
  void keep() { last = coordinator().take_actions(); }
  std::unique_ptr<Coordinator> made_;
};

}  // namespace muster
