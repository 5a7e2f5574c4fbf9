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
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "supervisor/rendezvous/coordinator.h"
#include "supervisor/rendezvous/coordinator_impl.h"

namespace muster {

struct CoordinatorFingerprint {
  static void add(const Coordinator& coordinator, Coordinator::Time now, std::string& key);
  static bool has_old_workers(const Coordinator& coordinator) {
    return coordinator.impl_->old_workers();
  }
};

namespace {

using namespace std::chrono_literals;
using Time = Coordinator::Time;
using Phase = Coordinator::Phase;

void put(std::string& key, int64_t number) {
  // Small numbers in one byte: keys are made for every step.
  if (number >= -1 && number < 250) {
    key += static_cast<char>(number + 1);
    return;
  }
  key += static_cast<char>(0xff);
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

struct Mishaps {
  int failures = 0;
  int crashes = 0;
  int silences = 0;
  int reconnections = 0;
  int leaves = 0;
  int signals = 0;
};

struct Setup {
  int min = 1;
  int max = 1;
  int max_restarts = 0;
  int nodes = 2;  // that may ever come; the first is the host's
  Mishaps mishaps;
  std::chrono::milliseconds grow_every{0};
};

enum class Up { kJoin, kNotice, kSettled, kLost, kLeft, kSignal, kGoodbye };

struct UpMessage {
  Up kind = Up::kJoin;
  int attempt = -1;
  bool complete = false;
  bool failed = false;
};

enum class Work { kNone, kRunning, kStopping, kGone };

// One node's muster as far as the coordinator can tell.
struct Agent {
  bool out = true;         // has not come yet
  bool dead = false;       // crashed, left, refused, or went home
  bool cut = false;        // what is sent to it does not arrive: its connection is an old one
  bool connected = false;  // the coordinator knows it
  int attempt = -1;        // whose verdict or end it has not heard yet
  Work work = Work::kNone;
  bool failed = false;
  bool complete = false;
  std::vector<UpMessage> up;  // (a deque is slow to copy)
  std::vector<Action> down;
};

std::string id_of(size_t agent) {
  return std::string(1, static_cast<char>('h' + agent));
}
size_t agent_of(const std::string& id) {
  return static_cast<size_t>(id[0] - 'h');
}

// What broke a claim, "" while all hold. Checked after each step, not at each claim: doctest's
// macros are too slow for millions of them.
struct Claims {
  std::string broken;
  void must(bool holds, const char* claim) {
    if (!holds && broken.empty()) broken = claim;
  }
};

struct World {
  explicit World(const Setup& the_setup)
      : setup(&the_setup),
        agents(static_cast<size_t>(the_setup.nodes)),
        left(the_setup.mishaps),
        coordinator(settings(), now) {}

  CoordinatorSettings settings() const {
    CoordinatorSettings settings;
    settings.terms = terms();
    settings.host_id = "h";
    settings.join_timeout = 20s;
    settings.last_call = 3s;
    settings.grow_every = setup->grow_every;
    settings.endpoint_host = "node-h";
    settings.store_port = 1;
    return settings;
  }
  JobTerms terms() const {
    JobTerms terms;
    terms.min_nodes = setup->min;
    terms.max_nodes = setup->max;
    terms.max_restarts = setup->max_restarts;
    return terms;
  }

  std::string key() const;
  void send(size_t to, UpMessage message) { agents[to].up.push_back(message); }
  void deliver_up(size_t from);
  void deliver_down(size_t to);
  void take(Claims& claims);
  void on_assigned(const std::vector<action::Assign>& batch, Claims& claims);
  void on_told(const AttemptVerdict& verdict, Claims& claims);
  void on_end(const JobEnd& end, Claims& claims);
  void on_first_notice(size_t from, const std::vector<Action>& actions, Claims& claims) const;
  void join(size_t agent);
  bool pass_time(Claims& claims);

  const Setup* setup;
  Time now{1h};
  std::vector<Agent> agents;
  Mishaps left;
  Coordinator coordinator;

  // What was seen.
  int attempt = -1;
  int restart_count = 0;
  std::set<size_t> members;
  std::set<size_t> unsettled;
  std::set<size_t> complete;
  bool noticed = false;
  int told_attempt = -1;
  std::optional<AttemptVerdict> told;
  std::optional<JobEnd> ended;
  bool signalled = false;
  bool closed = false;
  Claims pending;  // found while delivering
};

void World::join(size_t agent) {
  NodeFacts facts;
  facts.id = id_of(agent);
  facts.host = "node-" + facts.id;
  facts.workers = 1 + static_cast<int>(agent % 2);
  facts.attempt = agents[agent].attempt;
  facts.terms = terms();
  agents[agent].cut = false;
  agents[agent].down.clear();
  agents[agent].connected = true;  // until it is refused
  coordinator.join(facts, agent == 0 ? "" : "10.0.0.2", agent == 0 ? "" : "10.0.0.1", now);
}

event::FailureFound failure_of(size_t agent) {
  event::FailureFound failure;
  failure.rank = static_cast<int>(agent);
  failure.kind = "exit_code";
  failure.exit_code = 3;
  return failure;
}

void World::deliver_up(size_t from) {
  Agent& agent = agents[from];
  const UpMessage message = agent.up.front();
  agent.up.erase(agent.up.begin());
  const std::string id = id_of(from);
  switch (message.kind) {
    case Up::kJoin:
      join(from);
      break;
    case Up::kNotice:
      coordinator.failed(id, {message.attempt, failure_of(from)}, now);
      break;
    case Up::kSettled: {
      NodeOutcome outcome;
      outcome.attempt = message.attempt;
      outcome.complete = message.complete;
      if (message.failed) outcome.root = failure_of(from);
      if (message.attempt == attempt && unsettled.erase(from) > 0 && message.complete) {
        complete.insert(from);
      }
      coordinator.settled(id, outcome, now);
      break;
    }
    case Up::kLost:
      agent.connected = false;
      unsettled.erase(from);
      coordinator.lost(id, Coordinator::Lost::kClosed, now);
      break;
    case Up::kLeft:
      agent.connected = false;
      unsettled.erase(from);
      coordinator.lost(id, Coordinator::Lost::kLeft, now);
      break;
    case Up::kSignal: {
      event::SignalReceived signal;
      signal.signal = 15;
      signalled = true;
      coordinator.stop_requested(id, signal, false, now);
      break;
    }
    case Up::kGoodbye:
      agent.connected = false;
      coordinator.goodbye(id, now);
      break;
  }
}

void World::deliver_down(size_t to) {
  Agent& agent = agents[to];
  const Action message = std::move(agent.down.front());
  agent.down.erase(agent.down.begin());
  const bool busy = agent.work == Work::kRunning || agent.work == Work::kStopping;
  auto settle_again = [&] {
    send(to, {Up::kSettled, agent.attempt, agent.complete, agent.failed});
  };
  if (const auto* welcome = std::get_if<action::Welcome>(&message)) {
    if (agent.attempt < 0) return;
    if (welcome->resumed && agent.failed) send(to, {Up::kNotice, agent.attempt});
    if (agent.work == Work::kGone) settle_again();
    if (!welcome->resumed && agent.work == Work::kRunning) agent.work = Work::kStopping;
  } else if (const auto* assign = std::get_if<action::Assign>(&message)) {
    pending.must(!busy, "no node is assigned while it has workers");
    agent.attempt = assign->assignment.attempt;
    agent.work = Work::kRunning;
    agent.failed = agent.complete = false;
  } else if (const auto* stop = std::get_if<action::Stop>(&message)) {
    if (stop->order.attempt == agent.attempt && agent.work == Work::kRunning) {
      agent.work = Work::kStopping;
    }
  } else if (const auto* tell = std::get_if<action::Tell>(&message)) {
    if (tell->verdict.attempt != agent.attempt) return;
    pending.must(!busy, "no verdict comes before its node has settled");
    agent.attempt = -1;
    agent.work = Work::kNone;
  } else if (std::holds_alternative<action::End>(message)) {
    pending.must(!busy, "no node with workers is told the end");
    agent.dead = true;
    send(to, {Up::kGoodbye});
  } else if (std::holds_alternative<action::Refuse>(message)) {
    agent.dead = true;
  }
}

void World::on_assigned(const std::vector<action::Assign>& batch, Claims& claims) {
  for (const Agent& agent : agents) {
    const bool busy = agent.work == Work::kRunning || agent.work == Work::kStopping;
    claims.must(!(busy && agent.connected && !agent.dead),
                "no attempt begins while a node that is here has workers");
  }
  std::vector<Assignment> parts;
  members.clear();
  for (const action::Assign& assign : batch) {
    claims.must(members.insert(agent_of(assign.id)).second, "no node is assigned twice");
    parts.push_back(assign.assignment);
  }
  std::sort(parts.begin(), parts.end(),
            [](const Assignment& a, const Assignment& b) { return a.node < b.node; });
  const auto count = static_cast<int>(parts.size());
  claims.must(count >= setup->min && count <= setup->max, "MIN to MAX nodes take part");
  int rank = 0;
  for (const action::Assign& assign : batch)
    rank += 1 + static_cast<int>(agent_of(assign.id) % 2);
  const int world = rank;
  rank = 0;
  for (int node = 0; node < count; ++node) {
    const Assignment& part = parts[static_cast<size_t>(node)];
    claims.must(part.node == node && part.node_count == count, "nodes are dense and complete");
    claims.must(part.first_rank == rank, "ranks are dense and unique");
    claims.must(part.world_size == world, "the world is equal for all");
    claims.must(
        part.master_addr == parts[0].master_addr && part.master_port == parts[0].master_port,
        "the master is equal for all");
    claims.must(part.attempt == parts[0].attempt && part.restart_count == restart_count,
                "the counts are equal for all and what the verdict said");
    rank = node + 1 < count ? parts[static_cast<size_t>(node) + 1].first_rank : rank;
  }
  claims.must(parts[0].attempt == attempt + 1, "attempts are counted one by one");
  attempt = parts[0].attempt;
  unsettled = members;
  complete.clear();
  noticed = false;
}

void World::on_told(const AttemptVerdict& verdict, Claims& claims) {
  if (told && told->attempt == verdict.attempt) {
    const bool same =
        told->root.has_value() == verdict.root.has_value() &&
        (!told->root ||
         (told->root->host == verdict.root->host && told->root->kind == verdict.root->kind)) &&
        told->restarts == verdict.restarts && told->restart_count == verdict.restart_count;
    claims.must(same, "an attempt has one verdict");
    return;
  }
  claims.must(verdict.attempt == attempt, "the verdict is of the attempt that ran");
  claims.must(unsettled.empty(), "the verdict comes when all have settled");
  const bool worker = verdict.root && verdict.root->rank >= 0;
  const int charge = verdict.restarts && worker ? 1 : 0;
  claims.must(verdict.restart_count == restart_count + charge,
              "a worker's failure is charged once, nothing else is");
  claims.must(verdict.restart_count <= setup->max_restarts, "the budget is respected");
  restart_count = verdict.restart_count;
  told = verdict;
}

void World::on_end(const JobEnd& end, Claims& claims) {
  if (ended) {
    claims.must(ended->exit_code == end.exit_code && ended->outcome == end.outcome,
                "all nodes are told the same end");
    return;
  }
  ended = end;
  claims.must(unsettled.empty(), "the job ends when all have settled");
  if (end.outcome == Outcome::kSucceeded) {
    claims.must(attempt >= 0 && complete == members, "success means that all are complete");
    claims.must(end.exit_code == 0, "success is 0");
  }
  if (end.outcome == Outcome::kStopped) {
    claims.must(signalled && end.exit_code == 143, "only a signal stops the job");
  }
  if (end.outcome == Outcome::kFailed) claims.must(end.exit_code != 0, "failure is not 0");
}

void World::on_first_notice(size_t from, const std::vector<Action>& actions, Claims& claims) const {
  std::set<size_t> stopped;
  for (const Action& action : actions) {
    if (const auto* stop = std::get_if<action::Stop>(&action)) stopped.insert(agent_of(stop->id));
  }
  for (size_t other : unsettled) {
    claims.must(other == from || stopped.contains(other),
                "the first notice stops all others at once");
  }
}

// Carries out what the coordinator wants.
void World::take(Claims& claims) {
  if (!pending.broken.empty()) claims.must(false, pending.broken.c_str());
  std::vector<action::Assign> batch;
  bool reset = false;
  for (Action& action : coordinator.take_actions()) {
    std::string id;
    if (const auto* refuse = std::get_if<action::Refuse>(&action)) {
      agents[agent_of(refuse->id)].connected = false;
      agents[agent_of(refuse->id)].down.push_back(action);
      continue;
    }
    if (const auto* drop = std::get_if<action::Drop>(&action)) {
      agents[agent_of(drop->id)].connected = false;
      continue;
    }
    if (std::holds_alternative<action::ResetStore>(action)) reset = true;
    if (std::holds_alternative<action::Closed>(action)) {
      claims.must(!closed, "it closes once");
      closed = true;
      for (const Agent& agent : agents)
        claims.must(!agent.connected, "it closes when all have said goodbye");
    }
    if (const auto* welcome = std::get_if<action::Welcome>(&action)) {
      id = welcome->id;
      if (!welcome->resumed) unsettled.erase(agent_of(id));  // it was given up
    }
    if (const auto* stop = std::get_if<action::Stop>(&action)) id = stop->id;
    if (const auto* assign = std::get_if<action::Assign>(&action)) {
      id = assign->id;
      claims.must(reset, "the store is empty before an attempt");
      batch.push_back(*assign);
    }
    if (const auto* tell = std::get_if<action::Tell>(&action)) {
      id = tell->id;
      on_told(tell->verdict, claims);
    }
    if (const auto* end = std::get_if<action::End>(&action)) {
      id = end->id;
      on_end(end->end, claims);
    }
    if (id.empty()) continue;
    Agent& agent = agents[agent_of(id)];
    claims.must(agent.connected, "nothing is sent to a node that is unknown or lost");
    claims.must(!closed, "nothing is sent after the close");
    // A newcomer makes nothing of a welcome; without it there are fewer states.
    const bool idle = std::holds_alternative<action::Welcome>(action) && agent.attempt < 0;
    if (!agent.cut && !idle) agent.down.push_back(std::move(action));
  }
  if (!batch.empty()) on_assigned(batch, claims);
}

// To the next time at which something other than the countdown happens.
bool World::pass_time(Claims& claims) {
  const Phase before = coordinator.phase();
  for (int i = 0; i < 20; ++i) {
    const std::optional<Time> at = coordinator.wake_at();
    if (!at) return i > 0;
    claims.must(*at >= now, "the next time is not in the past");
    now = std::max(*at, now);
    coordinator.time(now);
    take(claims);
    if (coordinator.phase() != before) return true;
  }
  // Only for the end of old workers it waits without a limit of its own.
  claims.must(CoordinatorFingerprint::has_old_workers(coordinator), "waiting comes to an end");
  return false;
}

std::string World::key() const {
  std::string key;
  key.reserve(200);
  for (const Agent& agent : agents) {
    put(key, agent.out | agent.dead << 1 | agent.cut << 2 | agent.connected << 3 |
                 agent.failed << 4 | agent.complete << 5);
    put(key, static_cast<int>(agent.work));
    put(key, agent.attempt);
    put(key, static_cast<int64_t>(agent.up.size()));
    for (const UpMessage& message : agent.up) {
      put(key, static_cast<int>(message.kind) | message.complete << 4 | message.failed << 5);
      put(key, message.attempt);
    }
    put(key, static_cast<int64_t>(agent.down.size()));
    for (const Action& action : agent.down) {
      put(key, static_cast<int64_t>(action.index()));
      if (const auto* welcome = std::get_if<action::Welcome>(&action)) put(key, welcome->resumed);
      if (const auto* stop = std::get_if<action::Stop>(&action)) put(key, stop->order.attempt);
      if (const auto* tell = std::get_if<action::Tell>(&action)) put(key, tell->verdict.attempt);
    }
  }
  for (int count : {left.failures, left.crashes, left.silences, left.reconnections, left.leaves,
                    left.signals}) {
    put(key, count);
  }
  CoordinatorFingerprint::add(coordinator, now, key);
  return key;
}

// The steps that are possible in a world.
enum class Step {
  kDeliverUp,
  kDeliverDown,
  kStopped,
  kFinish,
  kTime,  // up to here they need no mishap: a fair run takes the first that is possible
  kJoin,
  kFail,
  kCrash,
  kSilence,
  kReturn,
  kReconnect,
  kLeave,
  kSignal,
};
constexpr Step kLastStep = Step::kSignal;
constexpr Step kLastFair = Step::kTime;

bool possible(const World& world, Step step, size_t i) {
  const Agent& agent = world.agents[i];
  const bool here = !agent.out && !agent.dead;
  const bool linked = here && agent.connected && !agent.cut;
  const bool guest = i != 0;
  switch (step) {
    case Step::kDeliverUp:
      return !agent.up.empty();
    case Step::kDeliverDown:
      return !agent.down.empty() && !agent.dead;
    case Step::kStopped:
      return here && agent.work == Work::kStopping;
    case Step::kFinish:
      return here && agent.work == Work::kRunning;
    case Step::kTime:
      return i == 0;
    case Step::kJoin:
      // One after the other: they differ in nothing but their names.
      return agent.out && (i == 0 || !world.agents[i - 1].out);
    case Step::kFail:
      return here && agent.work == Work::kRunning && world.left.failures > 0;
    case Step::kCrash:
      return guest && linked && world.left.crashes > 0;
    case Step::kSilence:
      return guest && linked && world.left.silences > 0;
    case Step::kReturn:  // after a silence
      return guest && here && !agent.connected && agent.up.empty() && agent.down.empty();
    case Step::kReconnect:
      return guest && linked && world.left.reconnections > 0;
    case Step::kLeave:
      return guest && linked && world.left.leaves > 0;
    case Step::kSignal:
      return linked && world.left.signals > 0;
  }
  return false;
}

void go_out(Agent& agent) {
  agent.up.clear();
  agent.down.clear();
  agent.cut = true;
}

void settle(World& world, size_t i, bool complete) {
  Agent& agent = world.agents[i];
  agent.work = Work::kGone;
  agent.complete = complete;
  // Cut off, it says so when it is back.
  if (agent.connected && !agent.cut) {
    world.send(i, {Up::kSettled, agent.attempt, agent.complete, agent.failed});
  }
}

void mishap(World& world, Step step, size_t i) {
  Agent& agent = world.agents[i];
  switch (step) {
    case Step::kJoin:
      agent.out = false;
      world.send(i, {Up::kJoin});
      break;
    case Step::kFail:
      --world.left.failures;
      agent.work = Work::kStopping;
      agent.failed = true;
      if (agent.connected && !agent.cut) world.send(i, {Up::kNotice, agent.attempt});
      break;
    case Step::kCrash:
      --world.left.crashes;
      go_out(agent);
      agent.dead = true;
      world.send(i, {Up::kLost});
      break;
    case Step::kSilence:
      --world.left.silences;
      go_out(agent);
      agent.connected = false;
      world.unsettled.erase(i);
      world.coordinator.lost(id_of(i), Coordinator::Lost::kSilent, world.now);
      break;
    case Step::kReturn:
      world.send(i, {Up::kJoin});
      break;
    case Step::kReconnect:
      --world.left.reconnections;
      go_out(agent);
      world.send(i, {Up::kJoin});
      break;
    case Step::kLeave:
      --world.left.leaves;
      agent.dead = true;
      agent.cut = true;
      agent.down.clear();
      world.send(i, {Up::kLeft});
      break;
    case Step::kSignal:
      --world.left.signals;
      world.send(i, {Up::kSignal});
      break;
    default:
      break;
  }
}

// Takes a step; false if time does not pass any more.
bool take_one_step(World& world, Step step, size_t i, Claims& claims) {
  Agent& agent = world.agents[i];
  switch (step) {
    case Step::kDeliverUp: {
      const UpMessage message = agent.up.front();
      const bool first = message.kind == Up::kNotice && message.attempt == world.attempt &&
                         world.coordinator.phase() == Phase::kRunning && agent.connected;
      world.deliver_up(i);
      if (first) {
        // A copy, so that the actions can be looked at and still be carried out.
        Coordinator copy(world.coordinator);
        world.on_first_notice(i, copy.take_actions(), claims);
      }
      break;
    }
    case Step::kDeliverDown:
      world.deliver_down(i);
      break;
    case Step::kStopped:
      settle(world, i, false);
      break;
    case Step::kFinish:
      settle(world, i, true);
      break;
    case Step::kTime:
      return world.pass_time(claims);
    default:
      mishap(world, step, i);
      break;
  }
  world.take(claims);
  return true;
}

// With more than two nodes the host's agent, which is in the coordinator's own process, hears and
// is heard at once. It keeps the space small.
bool take_step(World& world, Step step, size_t i, Claims& claims) {
  if (!take_one_step(world, step, i, claims)) return false;
  if (world.agents.size() <= 2) return true;
  for (Step next : {Step::kDeliverUp, Step::kDeliverDown, Step::kDeliverUp}) {
    while (possible(world, next, 0))
      take_one_step(world, next, 0, claims);
  }
  return true;
}

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

}  // namespace

void CoordinatorFingerprint::add(const Coordinator& coordinator, Time now, std::string& key) {
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
  }
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
                 member.outcome.has_value() << 3);
    put(key, member.outcome && member.outcome->complete);
    put(key, member.outcome && member.outcome->root);
    put(key, member.gone ? static_cast<int>(*member.gone) : -1);
  }
  put(key, impl.attempt->stopped_at_ ? static_cast<int64_t>(*impl.attempt->stopped_at_) : -1);
  for (const AttemptRecord::Arrival& arrival : impl.attempt->arrivals_)
    put(key, arrival.node * 2 + arrival.loss);
}

namespace {

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
