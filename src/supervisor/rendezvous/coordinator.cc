// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/coordinator.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "loop/check.h"
#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/diagnosis/stop_sender.h"
#include "supervisor/diagnosis/wait_status.h"
#include "supervisor/job/report.h"
#include "supervisor/rendezvous/admission.h"
#include "supervisor/rendezvous/coordinator_impl.h"
#include "supervisor/rendezvous/master_address.h"

namespace muster {

namespace {

// Of a node that comes back and is excluded by then.
constexpr int kExitExcluded = 1;

std::string failure_text(const event::FailureFound& failure, const std::string& host) {
  if (failure.rank < 0) return host + ": " + failure.message;
  return "rank " + std::to_string(failure.rank) + " on " + host + " failed";
}

}  // namespace

Coordinator::Impl::Impl(CoordinatorSettings the_settings, Time now)
    : settings(std::move(the_settings)), rules(rules_of(terms())) {
  MUST(terms().min_nodes >= 1 && terms().max_nodes >= terms().min_nodes);
  begin_forming(now, max());
}

std::string Coordinator::Impl::host_name() {
  const Node* host = roster.find(settings.host_id);
  return host != nullptr ? host->facts.host + " (the host)" : "the host";
}

void Coordinator::Impl::join(const NodeFacts& facts, const std::string& seen_address,
                             const std::string& our_address, Time now) {
  if (Node* node = roster.find(facts.id)) {
    node->seen_address = seen_address;
    node->our_address = our_address;
    if (resume(*node, facts)) return advance(now);
    // It has missed too much. Its new connection is the one it is known by, so nothing is dropped.
    remove(*node, Lost::kClosed, false);
  }
  // Whoever was cut off while the job ended is still told how.
  const bool over =
      phase == Phase::kClosed || (phase == Phase::kEnding && !former.contains(facts.id));
  if (over) {
    actions.push_back(action::Refuse{facts.id, "this job is ending", false});
    return;
  }
  if (auto reason = why_not_admitted(facts, terms(), host_name(), roster, excluded)) {
    actions.push_back(action::Refuse{facts.id, *reason, true});
    return;
  }
  admit(facts, seen_address, our_address);
  advance(now);
}

// An agent whose connection was cut before we noticed comes back on a new one. What we sent into
// the old one may be lost, so everything that still matters to it is said again. False: it has to
// join like a new one.
bool Coordinator::Impl::resume(Node& node, const NodeFacts& facts) {
  const std::string& id = node.facts.id;
  const bool same = attempt && facts.attempt == attempt->number();
  if (node.part == Part::kWorking && !same) return false;
  if (node.part == Part::kDone && !same && facts.attempt >= 0) return false;

  const bool lags = node.part == Part::kWaiting && facts.attempt >= 0;
  if (node.part == Part::kClearing || (lags && facts.attempt != node.settled)) {
    const bool clear = facts.attempt < 0;
    node.clearing = facts.attempt;
    roster.set_part(node, clear ? Part::kWaiting : Part::kClearing);
    pace.changed();
    actions.push_back(action::Welcome{id, false, false});
    if (clear && phase == Phase::kEnding) {
      send_home(node, job_end);
    } else if (clear && is_excluded(node)) {
      leave_out(node, kExitExcluded);
    }
    return true;
  }
  const bool spare = attempt && node.part == Part::kWaiting && attempt->size() >= max();
  actions.push_back(action::Welcome{id, spare, facts.attempt >= 0});
  if (node.part == Part::kWorking && phase == Phase::kStopping && order) {
    actions.push_back(action::Stop{id, *order});
  }
  const bool decided = node.part == Part::kWaiting || node.part == Part::kHome;
  if (decided && verdict && verdict->attempt == facts.attempt) {
    actions.push_back(action::Tell{id, verdict});
  }
  if (node.part == Part::kHome) actions.push_back(action::End{id, node.end});
  return true;
}

void Coordinator::Impl::admit(const NodeFacts& facts, const std::string& seen_address,
                              const std::string& our_address) {
  const bool spare = roster.staying() >= max() || (attempt && attempt->any_complete());
  Node& node = roster.add(facts);
  node.seen_address = seen_address;
  node.our_address = our_address;
  if (auto place = former.find(facts.id); place != former.end()) node.place = place->second;
  const int heard_of = std::min(std::max(facts.attempt, facts.last_attempt), kMaxAttempt);
  highest_number = std::max(highest_number, heard_of);
  restart_count = std::max(restart_count, std::min(facts.last_restart_count, terms().max_restarts));
  if (facts.attempt >= 0) {
    node.clearing = facts.attempt;
    roster.set_part(node, Part::kClearing);
  }
  pace.changed();

  const std::string& address = facts.address.empty() ? seen_address : facts.address;
  if (terms().max_nodes > 1 || !is_host(node)) {
    record(event::NodeJoined{facts.id, facts.host, address, facts.pid, facts.workers, spare,
                             facts.log_dir});
  }
  if (!loopback_said && !seen_address.empty() && !is_loopback_host(seen_address) &&
      is_loopback_host(settings.endpoint_host)) {
    loopback_said = true;
    say(facts.host + " came from " + seen_address + ", but the endpoint here is " +
        settings.endpoint_host + ": give every node the same name or address of this machine");
  }
  actions.push_back(action::Welcome{facts.id, spare, false});
  if (phase == Phase::kEnding && node.part == Part::kWaiting) send_home(node, job_end);
}

void Coordinator::Impl::remove(Node& node, Lost how, bool drop) {
  const std::string id = node.facts.id;
  const std::string host = node.facts.host;
  const bool member = node.part == Part::kWorking || node.part == Part::kDone;
  // One that was told the end owes us only a goodbye.
  if (node.part != Part::kHome) {
    record(event::NodeLost{id, host, member ? node.member : -1, std::string(lost_name(how)),
                           lost_text(host, how)});
  }
  if (drop) actions.push_back(action::Drop{id});
  if (node.place >= 0) former[id] = node.place;
  const bool works = node.part == Part::kWorking;
  const int number_in_attempt = node.member;
  roster.remove(id);
  pace.changed();
  if (!works) return;
  attempt->gone(number_in_attempt, how);
  if (phase == Phase::kRunning) {
    stop_members(StopReason::kMembership, SIGTERM, false,
                 host + (how == Lost::kLeft ? " left" : " was lost"));
  }
}

void Coordinator::Impl::failed(Node& node, const FailureNotice& notice) {
  if (node.part != Part::kWorking || notice.attempt != attempt->number()) return;
  attempt->failed(node.member, notice.preliminary);
  if (phase != Phase::kRunning) return;
  stop_members(StopReason::kFailure, SIGTERM, false,
               failure_text(notice.preliminary, node.facts.host));
}

void Coordinator::Impl::settled(Node& node, const NodeOutcome& outcome) {
  if (node.part == Part::kClearing && outcome.attempt == node.clearing) {
    return cleared(node, outcome);
  }
  if (node.part != Part::kWorking || outcome.attempt != attempt->number()) return;
  attempt->settled(node.member, outcome);
  roster.set_part(node, Part::kDone);
  node.settled = outcome.attempt;
  if (is_host(node)) host_done = true;
  if (phase != Phase::kRunning) return;
  const std::string& host = node.facts.host;
  if (outcome.root) {
    stop_members(StopReason::kFailure, SIGTERM, false, failure_text(*outcome.root, host));
  } else if (!outcome.trouble.empty()) {
    stop_members(StopReason::kFailure, SIGTERM, false, host + ": " + outcome.trouble);
  } else if (!outcome.complete) {
    // It was cut off for so long that it stopped on its own.
    stop_members(StopReason::kMembership, SIGTERM, false, host + " has stopped its workers");
  }
}

// One that had been given up, and came back, has ended the workers it still had. What became of
// them is of no interest any more, unless there is no end of them.
void Coordinator::Impl::cleared(Node& node, const NodeOutcome& outcome) {
  node.settled = outcome.attempt;
  node.clearing = -1;
  roster.set_part(node, Part::kWaiting);
  pace.changed();
  if (verdict && verdict->attempt == outcome.attempt) {
    actions.push_back(action::Tell{node.facts.id, verdict});
  }
  if (phase == Phase::kEnding) return send_home(node, job_end);
  if (is_excluded(node)) return leave_out(node, kExitExcluded);
  if (!outcome.left_running) return;
  send_home(node, {Outcome::kFailed, 1,
                   "something of attempt " + std::to_string(outcome.attempt) + " on " +
                       node.facts.host + " could not be ended"});
}

void Coordinator::Impl::stop_requested(const Node& node, const event::SignalReceived& signal,
                                       bool kill) {
  if (signal.forwarded || signal.signal <= 0) return;
  if (phase == Phase::kEnding || phase == Phase::kClosed) return;
  const bool first = stop_signal == 0;
  if (first) {
    stop_signal = signal.signal;
    stop_kind = kind_of_stop(signal);
  }
  event::SignalReceived there = signal;
  there.host = node.facts.host;
  const std::string why = describe_signal(there);
  if (phase == Phase::kForming) {
    for (auto& [join_order, other] : roster.nodes()) {
      if (other.part != Part::kClearing) continue;
      actions.push_back(action::Stop{
          other.facts.id, {other.clearing, signal.signal, StopReason::kSignal, kill, why}});
    }
    return end({Outcome::kStopped, 128 + stop_signal, terms().max_nodes > 1 ? why : "", stop_kind});
  }
  if (first) actions.push_back(action::SetStopKey{signal_name(signal.signal)});
  stop_members(StopReason::kSignal, signal.signal, kill, why);
}

std::string Coordinator::Impl::restart_requested(const Node& node, const std::string& who) {
  const bool several = terms().max_nodes > 1;
  const event::RestartRequested asked{number, who, several ? node.facts.host : ""};
  switch (phase) {
    case Phase::kForming:
      if (!rest_until) return "no worker is running: the job waits for its nodes";
      // One that is put off comes at once.
      rest_until.reset();
      record(asked);
      return "";
    case Phase::kStopping:
      return "the workers are being stopped already";
    case Phase::kEnding:
    case Phase::kClosed:
      return "the job is ending";
    case Phase::kRunning:
      break;
  }
  if (sent_home) return "nodes that had finished have gone home";
  record(asked);
  stop_members(
      StopReason::kRestart, SIGTERM, false,
      "restarting: asked for by " + who + (several ? " on " + node.facts.host : std::string()));
  return "";
}

void Coordinator::Impl::hung(const event::FailureFound& found) {
  if (phase != Phase::kRunning || found.attempt != attempt->number()) return;
  attempt->hung(found);
  const std::string rank = std::to_string(found.rank);
  if (found.rank >= 0)
    return stop_members(StopReason::kFailure, SIGTERM, false, "rank " + rank + " hangs", rank);
  int ranks = 0;
  for (const auto& [join_order, node] : roster.nodes())
    if (node.part == Part::kWorking || node.part == Part::kDone) ranks += node.facts.workers;
  stop_members(StopReason::kFailure, SIGTERM, false, "the job stands still",
               "0-" + std::to_string(std::max(1, ranks) - 1));
}

std::optional<Coordinator::Time> Coordinator::Impl::wake_at() const {
  std::optional<Time> at;
  auto also = [&at](Time time) { at = at ? std::min(*at, time) : time; };
  if (phase == Phase::kForming) {
    if (!call_until) also(join_deadline);
    if (rest_until) also(*rest_until);
    if (call_until && !old_workers()) also(std::max(*call_until, rest_until.value_or(Time())));
    if (terms().max_nodes > 1 && !only_rests()) also(pace.wake_at());
  } else if (phase == Phase::kRunning) {
    if (auto uneven = uneven_end_at()) also(*uneven);
    if (wants_to_grow()) also(started + settings.grow_every);
    if (has_finished_guests()) also(*first_complete + settings.exit_barrier);
  }
  return at;
}

Coordinator::Coordinator(CoordinatorSettings settings, Time now)
    : impl_(std::make_unique<Impl>(std::move(settings), now)) {}

Coordinator::Coordinator(const Coordinator& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}

Coordinator::~Coordinator() = default;

void Coordinator::join(const NodeFacts& facts, const std::string& seen_address,
                       const std::string& our_address, Time now) {
  impl_->join(facts, seen_address, our_address, now);
}

void Coordinator::lost(const std::string& id, Lost how, Time now) {
  Node* node = impl_->roster.find(id);
  if (node == nullptr || impl_->is_host(*node)) return;
  impl_->remove(*node, how, how != Lost::kLeft);
  impl_->advance(now);
}

void Coordinator::failed(const std::string& id, const FailureNotice& notice, Time now) {
  if (Node* node = impl_->roster.find(id)) impl_->failed(*node, notice);
  impl_->advance(now);
}

void Coordinator::ending(const std::string& id, const NodeOutcome& so_far, Time now) {
  const Node* node = impl_->roster.find(id);
  const bool works = node != nullptr && node->part == Part::kWorking;
  if (works && so_far.attempt == impl_->number) impl_->attempt->ending(node->member, so_far);
  impl_->advance(now);
}

void Coordinator::settled(const std::string& id, const NodeOutcome& outcome, Time now) {
  if (Node* node = impl_->roster.find(id)) {
    impl_->settled(*node, outcome);
    if (impl_->attempt && impl_->attempt->any_complete() && !impl_->first_complete) {
      impl_->first_complete = now;
    }
  }
  impl_->advance(now);
}

void Coordinator::stop_requested(const std::string& id, const event::SignalReceived& signal,
                                 bool kill, Time now) {
  if (const Node* node = impl_->roster.find(id)) impl_->stop_requested(*node, signal, kill);
  impl_->advance(now);
}

std::string Coordinator::restart_requested(const std::string& id, const std::string& who,
                                           Time now) {
  const Node* node = impl_->roster.find(id);
  if (node == nullptr) return "this node has no part in the job";
  std::string refusal = impl_->restart_requested(*node, who);
  impl_->advance(now);
  return refusal;
}

void Coordinator::hung(const event::FailureFound& found, Time now) {
  impl_->hung(found);
  impl_->advance(now);
}

void Coordinator::goodbye(const std::string& id, Time now) {
  Node* node = impl_->roster.find(id);
  if (node == nullptr) return;
  // Without having been told the end, it is a way of leaving.
  if (node->part != Part::kHome) return lost(id, Lost::kLeft, now);
  impl_->remove(*node, Lost::kLeft, false);
  impl_->advance(now);
}

void Coordinator::time(Time now) {
  impl_->advance(now);
}

std::optional<Coordinator::Time> Coordinator::wake_at() const {
  return impl_->wake_at();
}

std::vector<Action> Coordinator::take_actions() {
  return std::exchange(impl_->actions, {});
}

Coordinator::Phase Coordinator::phase() const {
  return impl_->phase;
}

int Coordinator::attempt() const {
  return impl_->number;
}

}  // namespace muster
