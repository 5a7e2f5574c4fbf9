// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/explored_world.h"

#include <algorithm>

#include "supervisor/rendezvous/coordinator_impl.h"

namespace muster::explored {

void put(std::string& key, int64_t number) {
  // Small numbers in one byte: keys are made for every step.
  if (number >= -1 && number < 250) {
    key += static_cast<char>(number + 1);
    return;
  }
  key += static_cast<char>(0xff);
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string id_of(size_t agent) {
  return std::string(1, static_cast<char>('h' + agent));
}

namespace {

using namespace std::chrono_literals;

size_t agent_of(const std::string& id) {
  return static_cast<size_t>(id[0] - 'h');
}

event::FailureFound failure_of(size_t agent) {
  event::FailureFound failure;
  failure.rank = static_cast<int>(agent);
  failure.kind = "exit_code";
  failure.exit_code = 3;
  return failure;
}

}  // namespace

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
    case Up::kEnding: {
      NodeOutcome so_far;
      so_far.attempt = message.attempt;
      so_far.early = true;
      if (message.failed) so_far.root = failure_of(from);
      coordinator.ending(id, so_far, now);
      break;
    }
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
    case Up::kRestart: {
      const bool runs = coordinator.phase() == Phase::kRunning;
      const bool rests = CoordinatorFingerprint::rests(coordinator);
      const bool begun = coordinator.restart_requested(id, "somebody", now).empty();
      pending.must(begun == ((runs || rests) && agent.connected),
                   "a restart is refused exactly when nothing runs or is put off");
      if (begun && runs) restart_asked = attempt;
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
    if (tell->verdict->attempt != agent.attempt || tell->verdict->early) return;
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
    claims.must(!excluded.contains(agent_of(assign.id)), "who is excluded stays so");
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
  places.resize(batch.size());
  for (const action::Assign& assign : batch)
    places.at(static_cast<size_t>(assign.assignment.node)) = agent_of(assign.id);
  unsettled = members;
  complete.clear();
  noticed = false;
}

void World::on_told_early(const AttemptVerdict& verdict, Claims& claims) {
  claims.must(verdict.attempt == attempt, "an early verdict is of the attempt that runs");
  claims.must(verdict.root && verdict.root->rank >= 0, "it names a worker");
  claims.must(!unsettled.empty(), "it comes while some have not settled");
  early = verdict;
}

void World::on_told(const AttemptVerdict& verdict, Claims& claims) {
  if (verdict.early) return on_told_early(verdict, claims);
  const bool kept = !early || early->attempt != verdict.attempt ||
                    (verdict.root && verdict.root->rank == early->root->rank);
  claims.must(kept, "who was named early is the root");
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
  const int charge = verdict.restarts && worker && verdict.excluded < 0 ? 1 : 0;
  claims.must(verdict.restart_count == restart_count + charge,
              "a worker's failure is charged once, nothing else is");
  claims.must(verdict.restart_count <= setup->max_restarts, "the budget is respected");
  if (verdict.excluded >= 0) {
    claims.must(verdict.restarts && verdict.excluded == verdict.root->node,
                "the failure's node is excluded, and the others go on");
    excluded.insert(places.at(static_cast<size_t>(verdict.excluded)));
    claims.must(!excluded.contains(0), "the host stays");
  }
  if (restart_asked == attempt) {
    claims.must(!worker, "who is stopped for a restart is no culprit");
    claims.must(verdict.restarts || signalled, "a restart that was granted happens");
  }
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
  const bool unanswered =
      attempt >= 0 && restart_asked == attempt && (!told || told->attempt != attempt);
  claims.must(!unanswered || signalled || complete == members,
              "a restart that was granted happens, unless all had finished");
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
      on_told(*tell->verdict, claims);
    }
    if (const auto* end = std::get_if<action::End>(&action)) {
      id = end->id;
      if (!excluded.contains(agent_of(id))) on_end(end->end, claims);
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
      if (const auto* tell = std::get_if<action::Tell>(&action))
        put(key, tell->verdict->attempt * 2 + tell->verdict->early);
    }
  }
  for (int count : {left.failures, left.crashes, left.silences, left.reconnections, left.leaves,
                    left.signals, left.restarts, left.lingers}) {
    put(key, count);
  }
  for (size_t agent : excluded)
    put(key, static_cast<int64_t>(agent));
  put(key, early ? early->attempt : -1);
  put(key, early ? early->root->rank : -1);
  CoordinatorFingerprint::add(coordinator, now, key);
  return key;
}

}  // namespace muster::explored
