// SPDX-License-Identifier: Apache-2.0
//
// What may happen next in a world, and what it does.

#include "rendezvous/explored_world.h"

namespace muster::explored {

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
    case Step::kRestart:
      return linked && world.left.restarts > 0;
    case Step::kLinger:
      return linked && agent.work == Work::kStopping && world.left.lingers > 0;
  }
  return false;
}

namespace {

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
    case Step::kRestart:
      --world.left.restarts;
      world.send(i, {Up::kRestart});
      break;
    case Step::kLinger:
      --world.left.lingers;
      world.send(i, {Up::kEnding, agent.attempt, false, agent.failed});
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

}  // namespace

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

}  // namespace muster::explored
