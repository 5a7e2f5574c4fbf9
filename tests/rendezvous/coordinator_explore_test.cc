// SPDX-License-Identifier: Apache-2.0
// Every order of events for a few nodes. The coordinator is driven by a model of agents with a
// queue in each direction: a step delivers one message, or lets one thing happen to one agent (its
// workers fail, finish or are gone; it joins, crashes, falls silent and comes back, is cut off and
// reconnects, leaves, is signalled), or lets time pass to the next deadline. How often each mishap
// may happen is bounded, so the space is finite and is visited whole; states that are equal are
// visited once. In each of them the claims in World::on_* must hold, and from each of them a run
// without further mishaps must reach the end.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/explored_world.h"
#include "supervisor/rendezvous/coordinator_impl.h"

namespace muster {

bool CoordinatorFingerprint::has_old_workers(const Coordinator& coordinator) {
  return coordinator.impl_->old_workers();
}

bool CoordinatorFingerprint::rests(const Coordinator& coordinator) {
  const Coordinator::Impl& impl = *coordinator.impl_;
  return impl.phase == Coordinator::Phase::kForming && impl.rest_until;
}

void CoordinatorFingerprint::add(const Coordinator& coordinator, Coordinator::Time now,
                                 std::string& key) {
  using namespace explored;
  const Coordinator::Impl& impl = *coordinator.impl_;
  put(key, static_cast<int>(impl.phase));
  put(key, impl.number);
  put(key, impl.restart_count);
  put(key, impl.stop_signal);
  put(key, static_cast<int64_t>(impl.enough));
  put(key, impl.verdict ? impl.verdict->attempt : -1);
  put(key, impl.verdict && impl.verdict->root ? impl.verdict->root->rank : -2);
  put(key, static_cast<int>(impl.job_end.outcome));
  put(key, impl.job_end.exit_code);
  put(key, impl.last_exit_code);
  auto left = [&](Time at) { return std::max<int64_t>(0, (at - now).count()); };
  if (impl.phase == Phase::kForming) {
    put(key, left(impl.join_deadline));
    put(key, impl.call_until ? left(*impl.call_until) : -1);
    put(key, impl.rest_until ? left(*impl.rest_until) : -1);
  }
  // Rows are short here, and no failure is forgotten: only how many there were counts.
  const bool counts = impl.rules.same_limit.times > 0 || impl.rules.backoff.first.count() > 0;
  if (counts) put(key, impl.failures.in_a_row() * 16 + impl.failures.same());
  put(key, static_cast<int64_t>(impl.excluded.size()));
  if (impl.phase == Phase::kRunning) put(key, left(impl.started + impl.settings.grow_every));
  for (const auto& [order, node] : impl.roster.nodes()) {
    key += node.facts.id;
    put(key, static_cast<int>(node.part));
    put(key, node.clearing);
    put(key, node.settled);
    put(key, node.place);
    put(key, node.member);
  }
  for (const auto& [id, place] : impl.former) {
    key += id;
    put(key, place);
  }
  if (!impl.attempt) return;
  for (const AttemptRecord::Part& member : impl.attempt->members_) {
    key += member.facts.host;
    put(key, member.open | member.gone.has_value() << 1 | member.notice.has_value() << 2 |
                 member.outcome.has_value() << 3 | member.so_far.has_value() << 4);
    put(key, member.so_far && member.so_far->root);
    put(key, member.outcome && member.outcome->complete);
    put(key, member.outcome && member.outcome->root);
    put(key, member.gone ? static_cast<int>(*member.gone) : -1);
  }
  put(key, impl.attempt->looked_early_);
  put(key, impl.attempt->told_ ? impl.attempt->told_->rank : -1);
  put(key, impl.attempt->stopped_at_ ? static_cast<int64_t>(*impl.attempt->stopped_at_) : -1);
  for (const AttemptRecord::Arrival& arrival : impl.attempt->arrivals_)
    put(key, arrival.node * 2 + arrival.loss);
}

namespace {

using namespace explored;
using namespace std::chrono_literals;

using Key = std::pair<uint64_t, uint64_t>;
struct KeyHash {
  size_t operator()(const Key& key) const { return key.first; }
};

Key short_key(const std::string& key) {
  // Two independent hashes: of a million states the odds that two are mixed up are nothing.
  uint64_t fnv = 1469598103934665603ULL;
  for (char c : key)
    fnv = (fnv ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return {std::hash<std::string>()(key), fnv};
}

struct Explorer {
  explicit Explorer(const Setup& the_setup) : setup(the_setup) {}

  void run() {
    World start(setup);
    start.agents[0].out = false;
    start.send(0, {Up::kJoin});
    start.deliver_up(0);
    Claims claims;
    start.take(claims);
    visit(start);
    for (const auto& [key, next] : fair)
      check_end(key);
  }

  Key visit(const World& world) {
    const Key key = short_key(world.key());
    if (!fair.emplace(key, key).second || !broken.empty()) return key;
    bool fair_found = false;
    for (int s = 0; s <= static_cast<int>(kLastStep); ++s) {
      const auto step = static_cast<Step>(s);
      for (size_t i = 0; i < world.agents.size(); ++i) {
        if (!possible(world, step, i)) continue;
        World next(world);
        Claims claims;
        const bool went = take_step(next, step, i, claims);
        ++steps;
        path.push_back(std::to_string(s) + id_of(i));
        if (!claims.broken.empty() && broken.empty()) {
          broken = claims.broken + " after";
          for (const std::string& part : path)
            broken += " " + part;
        }
        if (went) {
          const Key next_key = visit(next);
          if (!fair_found && step <= kLastFair) {
            fair_found = true;
            fair[key] = next_key;
          }
        }
        path.pop_back();
        if (!broken.empty()) return key;
      }
    }
    if (!fair_found && world.closed) ends.insert(key);
    return key;
  }

  // Follows the fair run; every state on it that leads to the end is remembered.
  void check_end(Key key) {
    std::vector<Key> way;
    std::set<Key> seen;
    while (!ends.contains(key)) {
      way.push_back(key);
      const Key next = fair.at(key);
      if (!seen.insert(key).second || next == key) {
        if (broken.empty()) broken = "every job can end";
        return;
      }
      key = next;
    }
    ends.insert(way.begin(), way.end());
  }

  const Setup& setup;
  std::unordered_map<Key, Key, KeyHash> fair;  // each state and its next without a mishap
  std::set<Key> ends;                          // states from which the end is reached
  std::vector<std::string> path;
  std::string broken;
  size_t steps = 0;
};

void explore(const Setup& setup, size_t least_states) {
  Explorer explorer(setup);
  explorer.run();
  MESSAGE(explorer.fair.size() << " states, " << explorer.steps << " steps");
  CHECK(explorer.broken == "");
  CHECK(explorer.fair.size() >= least_states);
}

}  // namespace

TEST_CASE("explored: one node") {
  explore({.max_restarts = 2, .nodes = 1, .mishaps = {.failures = 3, .signals = 2}}, 400);
}

TEST_CASE("explored: two fixed nodes that fail, crash and fall silent") {
  explore({.min = 2,
           .max = 2,
           .max_restarts = 1,
           .mishaps = {.failures = 2, .crashes = 1, .silences = 1}},
          10'000);
}

TEST_CASE("explored: two fixed nodes that fail or are lost, and take long to stop") {
  explore({.min = 2,
           .max = 2,
           .max_restarts = 1,
           .mishaps = {.failures = 2, .silences = 1, .lingers = 2}},
          10'000);
}

TEST_CASE("explored: two fixed nodes that fail or are signalled, and take long to stop") {
  explore({.min = 2, .max = 2, .mishaps = {.failures = 2, .signals = 1, .lingers = 2}}, 5'000);
}

TEST_CASE("explored: three fixed nodes that fail and take long to stop") {
  explore({.min = 3, .max = 3, .nodes = 3, .mishaps = {.failures = 2, .lingers = 3}}, 2'000);
}

TEST_CASE("explored: two fixed nodes without a budget") {
  explore({.min = 2, .max = 2, .mishaps = {.failures = 2, .crashes = 1, .silences = 1}}, 5'000);
}

TEST_CASE("explored: two fixed nodes that reconnect") {
  explore({.min = 2,
           .max = 2,
           .max_restarts = 1,
           .mishaps = {.failures = 1, .silences = 1, .reconnections = 1}},
          10'000);
}

TEST_CASE("explored: two fixed nodes, a leave and a signal") {
  explore({.min = 2,
           .max = 2,
           .max_restarts = 1,
           .mishaps = {.failures = 1, .leaves = 1, .signals = 1}},
          4'000);
}

TEST_CASE("explored: two fixed nodes and a spare") {
  explore({.min = 2,
           .max = 2,
           .max_restarts = 1,
           .nodes = 3,
           .mishaps = {.failures = 1, .crashes = 1, .silences = 1}},
          10'000);
}

TEST_CASE("explored: three fixed nodes that fail at once") {
  explore({.min = 3, .max = 3, .max_restarts = 1, .nodes = 3, .mishaps = {.failures = 2}}, 5'000);
}

TEST_CASE("explored: a restart of one node that fails, finishes or is signalled") {
  explore({.max_restarts = 1, .nodes = 1, .mishaps = {.failures = 2, .signals = 1, .restarts = 2}},
          300);
}

TEST_CASE("explored: restarts of two fixed nodes that fail and crash") {
  explore({.min = 2,
           .max = 2,
           .max_restarts = 1,
           .mishaps = {.failures = 1, .crashes = 1, .restarts = 2}},
          5'000);
}

TEST_CASE("explored: a restart of two fixed nodes that reconnect and are signalled") {
  explore({.min = 2, .max = 2, .mishaps = {.reconnections = 1, .signals = 1, .restarts = 1}},
          2'000);
}

TEST_CASE("explored: a restart while one to two nodes come and go") {
  explore({.min = 1, .max = 2, .mishaps = {.crashes = 1, .silences = 1, .restarts = 1}}, 3'000);
}

TEST_CASE("explored: restarts that are put off, of one node") {
  explore({.max_restarts = 3,
           .nodes = 1,
           .mishaps = {.failures = 4, .signals = 1, .restarts = 1},
           .same_failure_limit = "4/100000",
           .restart_backoff = "2:3"},
          300);
}

TEST_CASE("explored: restarts that are put off, of two fixed nodes that crash") {
  explore({.min = 2,
           .max = 2,
           .max_restarts = 3,
           .mishaps = {.failures = 2, .crashes = 1, .signals = 1},
           .restart_backoff = "2"},
          5'000);
}

TEST_CASE("explored: restarts that are put off while one to two nodes come and go") {
  explore({.min = 1,
           .max = 2,
           .max_restarts = 3,
           .mishaps = {.failures = 2, .silences = 1},
           .restart_backoff = "2"},
          5'000);
}

TEST_CASE("explored: restarts that are put off, and one that is asked for meanwhile") {
  explore({.min = 1,
           .max = 2,
           .max_restarts = 3,
           .mishaps = {.failures = 1, .silences = 1, .restarts = 1},
           .restart_backoff = "2"},
          2'000);
}

TEST_CASE("explored: two fixed nodes that fail in the same way too often") {
  explore({.min = 2,
           .max = 2,
           .max_restarts = 3,
           .mishaps = {.failures = 3, .silences = 1},
           .same_failure_limit = "2/100000"},
          5'000);
}

TEST_CASE("explored: two fixed nodes and a spare, who are left out when they fail") {
  explore({.min = 2,
           .max = 2,
           .nodes = 3,
           .mishaps = {.failures = 1, .silences = 1, .signals = 1},
           .failure_policy = "exit_code=stop-and-exclude-node"},
          5'000);
}

TEST_CASE("explored: one to two nodes, who are left out when they fail or are lost") {
  explore({.min = 1,
           .max = 2,
           .mishaps = {.failures = 1, .crashes = 1, .silences = 1, .reconnections = 1},
           .failure_policy = "any=stop-and-exclude-node"},
          5'000);
}

TEST_CASE("explored: one to two nodes") {
  explore({.min = 1,
           .max = 2,
           .max_restarts = 1,
           .mishaps = {.failures = 1, .crashes = 1, .signals = 1}},
          10'000);
}

TEST_CASE("explored: one to two nodes that come back") {
  explore({.min = 1, .max = 2, .mishaps = {.failures = 1, .silences = 1, .reconnections = 1}},
          10'000);
}

TEST_CASE("explored: one to two nodes that grow slowly") {
  explore({.min = 1, .max = 2, .mishaps = {.crashes = 1, .silences = 1}, .grow_every = 5s}, 3'000);
}

TEST_CASE("explored: two to three nodes") {
  explore({.min = 2, .max = 3, .nodes = 3, .mishaps = {.failures = 1, .crashes = 1}}, 15'000);
}

TEST_CASE("explored: two to three nodes and a spare") {
  explore({.min = 2, .max = 3, .nodes = 4, .mishaps = {.crashes = 1}}, 30'000);
}

}  // namespace muster