// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/host_line.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

namespace muster {

namespace {

CoordinatorHost::Settings settings_for(const LaunchPlan& plan, const NodeFacts& facts,
                                       const Discovery::Found& found) {
  const RendezvousPlan& rendezvous = plan.rendezvous;
  CoordinatorHost::Settings settings;
  CoordinatorSettings& coordinator = settings.coordinator;
  coordinator.terms = facts.terms;
  coordinator.host_id = facts.id;
  coordinator.join_timeout = rendezvous.join_timeout;
  coordinator.last_call = rendezvous.last_call_timeout;
  coordinator.grow_every = rendezvous.grow_every;
  coordinator.exit_barrier = rendezvous.exit_barrier;
  coordinator.endpoint_host = facts.endpoint_host;
  coordinator.fallback_address = rendezvous.several_nodes() ? found.host : plan.master_addr;
  if (plan.agent_store && found.store) coordinator.store_port = found.store->port();
  settings.run_id = plan.run_id;
  settings.token = rendezvous.token;
  settings.keep_alive_interval = rendezvous.keep_alive_interval;
  settings.keep_alive_max_attempt = rendezvous.keep_alive_max_attempt;
  settings.store_allow = rendezvous.store_allow;
  return settings;
}

}  // namespace

HostLine::HostLine(Loop& loop, const LaunchPlan& plan, const NodeFacts& facts,
                   Discovery::Found found, Callbacks callbacks, Watchers watchers)
    : HostLine(loop, settings_for(plan, facts, found), std::move(found.store), facts,
               std::move(callbacks), std::move(watchers)) {}

HostLine::HostLine(Loop& loop, CoordinatorHost::Settings settings,
                   std::unique_ptr<StoreServer>&& store, const NodeFacts& facts,
                   Callbacks callbacks, Watchers watchers)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      host_(loop, std::move(settings), std::move(store), local_agent(),
            host_callbacks(std::move(watchers))) {
  host_.join(facts);
}

CoordinatorHost::LocalAgent HostLine::local_agent() {
  CoordinatorHost::LocalAgent local;
  local.on_welcome = [this](bool resumed) {
    if (!silent_) callbacks_.on_welcome(false, resumed);
  };
  local.on_refused = [this](const std::string& reason) {
    if (silent_) return;
    auto on_lost = callbacks_.on_lost;
    on_lost(reason);
  };
  local.on_assignment = [this](const Assignment& assignment) { assigned(assignment); };
  local.on_stop = [this](const StopOrder& order) {
    if (!silent_) callbacks_.on_stop(order);
  };
  local.on_verdict = [this](const AttemptVerdict& verdict) {
    if (!silent_) callbacks_.on_verdict(verdict);
  };
  local.on_evidence = [this](const std::string& why) {
    if (!silent_) callbacks_.on_evidence(why);
  };
  local.on_end = [this](const JobEnd& end) { ended(end); };
  return local;
}

CoordinatorHost::Callbacks HostLine::host_callbacks(Watchers watchers) {
  CoordinatorHost::Callbacks host;
  host.on_record = std::move(watchers.on_record);
  host.on_samples = std::move(watchers.on_samples);
  host.on_say = [this](const std::string& line) { callbacks_.on_say(line); };
  host.on_closed = [this] {
    if (auto on_closed = std::exchange(on_closed_, nullptr)) on_closed();
  };
  return host;
}

void HostLine::assigned(const Assignment& assignment) {
  unsettled_ = assignment.attempt;
  if (!silent_) return callbacks_.on_assignment(assignment);
  if (on_closed_) settle_unsettled();
}

void HostLine::ended(const JobEnd& end) {
  ended_ = true;
  if (!silent_) return callbacks_.on_end(end);
  if (on_closed_) host_.goodbye();
}

// For a job that has left and says nothing more: what it had is gone.
void HostLine::settle_unsettled() {
  if (unsettled_ < 0) return;
  NodeOutcome nothing_left;
  nothing_left.attempt = std::exchange(unsettled_, -1);
  host_.settled(nothing_left);
}

void HostLine::failed(const FailureNotice& notice) {
  host_.failed(notice);
}

void HostLine::ending(const NodeOutcome& so_far) {
  host_.ending(so_far);
}

void HostLine::settled(const NodeOutcome& outcome) {
  if (outcome.attempt == unsettled_) unsettled_ = -1;
  host_.settled(outcome);
}

bool HostLine::request_stop(const event::SignalReceived& signal, bool kill) {
  host_.stop_requested(signal, kill);
  return true;
}

std::string HostLine::request_restart(const std::string& who) {
  return host_.restart_requested(who);
}

std::string HostLine::request_evidence(const std::string& why) {
  return host_.evidence_requested(why);
}

void HostLine::leave() {
  silent_ = left_ = true;
  event::SignalReceived leaving;
  leaving.signal = SIGTERM;
  leaving.sender_pid = ::getpid();
  leaving.sender = "muster, which leaves the job";
  host_.stop_requested(leaving, false);
}

void HostLine::close(std::function<void()> on_closed) {
  silent_ = true;
  on_closed_ = std::move(on_closed);
  if (ended_) return host_.goodbye();
  if (left_) return settle_unsettled();
  // The job ends here for reasons of this node's own (its front was killed): nobody waits for the
  // others, who learn of it by their connections.
  closing_ = Timer::start(loop_, Milliseconds(0), [this] {
    auto closed = std::exchange(on_closed_, nullptr);
    closed();
  });
}

}  // namespace muster
