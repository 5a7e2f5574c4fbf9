// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/job/failure_history.h"
#include "supervisor/job/restart_policy.h"
#include "supervisor/rendezvous/attempt_record.h"
#include "supervisor/rendezvous/awaited.h"
#include "supervisor/rendezvous/coordinator.h"
#include "supervisor/rendezvous/roster.h"

namespace muster {

// What the terms say of restarts. They are this node's own and were checked when they were given.
RestartRules rules_of(const JobTerms& terms);

// Hosts that are excluded at most; with so many no other one is.
inline constexpr size_t kMaxExcluded = 256;

// The coordinator's state and steps. Every input changes what is known of one node and then calls
// advance(), which alone moves from phase to phase; so no order of inputs needs a rule of its own.
struct Coordinator::Impl {
  Impl(CoordinatorSettings the_settings, Time now);

  // coordinator.cc: the inputs.
  void join(const NodeFacts& facts, const std::string& seen_address, const std::string& our_address,
            Time now);
  bool resume(Node& node, const NodeFacts& facts);
  void admit(const NodeFacts& facts, const std::string& seen_address,
             const std::string& our_address);
  void remove(Node& node, Lost how, bool drop);
  void failed(Node& node, const FailureNotice& notice);
  void settled(Node& node, const NodeOutcome& outcome);
  void cleared(Node& node, const NodeOutcome& outcome);
  void stop_requested(const Node& node, const event::SignalReceived& signal, bool kill);
  std::string restart_requested(const Node& node, const std::string& who);
  void hung(const event::FailureFound& found);
  std::optional<Time> wake_at() const;

  // coordinator_phases.cc, coordinator_verdict.cc: what follows from them.
  void advance(Time now);
  void begin_forming(Time now, size_t enough_nodes);
  void advance_forming(Time now);
  void show_wait(Time now);
  void give_up_waiting();
  void start_attempt(Time now);
  std::pair<std::string, int> master_for(const std::vector<Node*>& members);
  void advance_running(Time now);
  std::optional<Time> uneven_end_at() const;
  void say_uneven_end(Time now);
  bool wants_to_grow() const;
  bool has_finished_guests() const;
  void stop_members(StopReason reason, int signal, bool kill, const std::string& why,
                    const std::string& hung_ranks = "");
  void tell_early();
  void conclude(Time now);
  RestartDecision decide(const AttemptRecord::Findings& findings, Time now);
  std::string why_not_excluded(const AttemptRecord::Findings& findings);
  void exclude(const event::FailureFound& root);
  bool is_excluded(const Node& node) const;
  void leave_out(Node& node, int exit_code);
  JobEnd end_for(const AttemptRecord::Findings& findings, bool may_restart) const;
  void end(JobEnd the_end);
  void send_home(Node& node, const JobEnd& the_end);

  const JobTerms& terms() const { return settings.terms; }
  bool is_host(const Node& node) const { return node.facts.id == settings.host_id; }
  size_t min() const { return static_cast<size_t>(terms().min_nodes); }
  size_t max() const { return static_cast<size_t>(terms().max_nodes); }
  size_t ready() const { return roster.count(Part::kWaiting); }
  // While workers of an older attempt are left on a node that is here, no attempt begins: the two
  // would work on the same files. It does not last; agents end their workers within a bound.
  bool old_workers() const { return roster.count(Part::kClearing) > 0; }
  std::string host_name();
  void say(std::string line) { actions.push_back(action::Say{std::move(line)}); }
  void record(EventBody event) { actions.push_back(action::Record{std::move(event)}); }

  // Nothing but the delay before a restart is waited for.
  bool only_rests() const { return rest_until && ready() >= std::min(enough, max()); }

  CoordinatorSettings settings;
  RestartRules rules;
  Phase phase = Phase::kForming;
  Roster roster;
  std::vector<Action> actions;

  // Forming.
  Time join_deadline{};
  std::optional<Time> call_until;  // set while MIN nodes are here
  std::optional<Time> rest_until;  // no attempt begins before (--restart-backoff)
  size_t enough = 0;               // with so many it begins without a last call
  std::string replaced;            // "node-b": whose replacement is awaited, "" if nobody's
  bool loss_said = false;
  bool hint_said = false;
  AwaitedPace pace;

  // Running and stopping.
  int number = -1;          // of the last attempt
  int highest_number = -1;  // that any node has heard of, from this coordinator or one before it
  int restart_count = 0;
  std::optional<AttemptRecord> attempt;
  Time started{};
  std::optional<StopOrder> order;      // the last one, for a node that comes back
  std::map<std::string, int> former;   // places of members that are gone, until the next attempt
  std::optional<Time> first_complete;  // when a member's work was done
  bool host_done = true;               // its part in the attempt, if it has one
  bool uneven_end_said = false;
  bool sent_home = false;  // finished members have gone: no other attempt can follow
  int stop_signal = 0;     // the first that asked the job to stop
  std::string stop_kind;   // by whom, event::JobEnded::kind
  std::string master_addr;
  std::string uneven_said;
  bool loopback_said = false;

  FailureHistory failures;
  std::map<std::string, std::string> excluded;  // hosts that may have no part any more, and why

  std::shared_ptr<const AttemptVerdict> verdict;  // of the last attempt, for a node that missed it
  int last_exit_code = 1;                         // of the last failed attempt; 1 for want of any
  JobEnd job_end;                                 // ending
};

}  // namespace muster
