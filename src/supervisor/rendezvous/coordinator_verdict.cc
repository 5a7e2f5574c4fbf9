// SPDX-License-Identifier: Apache-2.0
//
// The end of an attempt: what it was, what follows, and for whom.

#include <algorithm>
#include <utility>

#include "loop/check.h"
#include "supervisor/rendezvous/admission.h"
#include "supervisor/rendezvous/coordinator_impl.h"

namespace muster {

namespace {

// For trouble of muster's own: no worker's exit code tells it.
constexpr int kExitTrouble = 1;

}  // namespace

RestartRules rules_of(const JobTerms& terms) {
  const auto policy = parse_failure_policy(terms.failure_policy);
  const auto limit = parse_same_failure_limit(terms.same_failure_limit);
  const auto backoff = parse_restart_backoff(terms.restart_backoff);
  MUST(policy && limit && backoff);
  return {terms.max_restarts, terms.restart_always, *policy, *limit, *backoff};
}

// Whether another attempt may follow, as far as no signal forbids it.
RestartDecision Coordinator::Impl::decide(const AttemptRecord::Findings& findings, Time now) {
  RestartDecision decision;
  decision.restart = true;
  decision.charged = false;
  if (findings.root) {
    if (findings.charged) {
      failures.add(*findings.root, {started, now, findings.step}, rules.same_limit.within);
    }
    decision = decide_restart(*findings.root, rules,
                              {restart_count, findings.charged, findings.left_running,
                               failures.same(), failures.in_a_row(), why_not_excluded(findings)});
  }
  const bool possible =
      !attempt->all_complete() && !findings.left_running && findings.trouble.empty() && !sent_home;
  if (possible || !decision.restart) return decision;
  decision.restart = false;
  decision.reason.clear();  // the job's end says why
  return decision;
}

std::string Coordinator::Impl::why_not_excluded(const AttemptRecord::Findings& findings) {
  const event::FailureFound& root = *findings.root;
  if (terms().max_nodes == 1) return "there is no other";
  if (findings.charged && root.rank < 0) return "no rank differs from the others";
  const Node* host = roster.find(settings.host_id);
  if (host != nullptr && host->settled == number && host->member == root.node)
    return "the nodes meet there";
  return excluded.size() >= kMaxExcluded ? "too many are already" : "";
}

// As if it were lost, except that it is here to be told, and may not come back. By the host's name:
// its node may have been cut off and have come again meanwhile.
void Coordinator::Impl::exclude(const event::FailureFound& root) {
  const std::string rank = root.rank < 0 ? "" : "rank " + std::to_string(root.rank) + ", ";
  excluded.emplace(root.host, rank + root.kind + " in attempt " + std::to_string(number));
  for (auto& [join_order, node] : roster.nodes()) {
    if (node.part == Part::kWaiting && node.facts.host == root.host && !is_host(node)) {
      leave_out(node, root.exit_code);
    }
  }
}

bool Coordinator::Impl::is_excluded(const Node& node) const {
  return excluded.contains(node.facts.host) && !is_host(node);
}

void Coordinator::Impl::leave_out(Node& node, int exit_code) {
  const NodeFacts& facts = node.facts;
  const std::string text = excluded_text(facts.host, excluded.at(facts.host));
  const int part = node.settled == number ? node.member : -1;
  record(event::NodeLost{facts.id, facts.host, part, "excluded", text});
  send_home(node, {Outcome::kFailed, exit_code, text});
}

// While some are still being stopped.
void Coordinator::Impl::tell_early() {
  std::optional<event::FailureFound> root = attempt->find_early();
  if (!root) return;
  AttemptVerdict early;
  early.attempt = number;
  early.root = std::move(root);
  early.restart_count = restart_count;
  early.early = true;
  const auto told = std::make_shared<const AttemptVerdict>(std::move(early));
  for (auto& [join_order, node] : roster.nodes()) {
    const bool member = node.part == Part::kWorking || node.part == Part::kDone;
    if (member) actions.push_back(action::Tell{node.facts.id, told});
  }
}

void Coordinator::Impl::conclude(Time now) {
  AttemptRecord::Findings findings = attempt->findings();
  RestartDecision decision = decide(findings, now);
  const bool restarts = decision.restart && stop_signal == 0;
  if (restarts && decision.charged) ++restart_count;
  const bool excludes = restarts && decision.exclude;

  for (auto& [join_order, node] : roster.nodes()) {
    if (node.part == Part::kDone) roster.set_part(node, Part::kWaiting);
  }
  auto told = std::make_shared<const AttemptVerdict>(
      AttemptVerdict{number, findings.root, std::move(findings.others), std::move(findings.victims),
                     restarts, restart_count, std::move(findings.collectives),
                     findings.root && !decision.restart ? decision.reason : "",
                     restarts ? decision.delay.count() : 0, excludes ? findings.root->node : -1});
  if (findings.root || restarts || !told->collectives.found.empty()) {
    for (auto& [join_order, node] : roster.nodes()) {
      if (node.part == Part::kWaiting) actions.push_back(action::Tell{node.facts.id, told});
    }
    verdict = std::move(told);
  }
  if (!restarts) return end(end_for(findings, decision.restart));
  if (findings.root) last_exit_code = findings.root->exit_code;
  if (excludes) exclude(*findings.root);
  std::vector<std::string> gone = attempt->gone_hosts();
  if (excludes && std::find(gone.begin(), gone.end(), findings.root->host) == gone.end())
    gone.push_back(findings.root->host);
  replaced = join_names(gone);
  const size_t size = attempt->size();
  attempt.reset();
  begin_forming(now, size);
  if (decision.delay.count() == 0) return;
  rest_until = now + decision.delay;
  join_deadline += decision.delay;
}

// How the job ends after an attempt that nothing follows. With one node the events before have said
// why, and no more is said.
JobEnd Coordinator::Impl::end_for(const AttemptRecord::Findings& findings, bool may_restart) const {
  const bool complete = attempt->all_complete();
  std::string why;
  if (terms().max_nodes > 1) {
    if (!findings.trouble.empty()) {
      why = findings.trouble;
    } else if (findings.left_running) {
      why = "something of attempt " + std::to_string(number) + " on " + findings.left_running_host +
            " could not be ended";
    } else if (sent_home && !complete) {
      why = "no other attempt: nodes that had finished have gone home (--exit-barrier-timeout)";
    }
  }
  if (findings.root && !may_restart) return {Outcome::kFailed, findings.root->exit_code, why};
  // All had ended with 0 before anybody could stop them: the signal came too late.
  if (stop_signal != 0 && !complete) return {Outcome::kStopped, 128 + stop_signal, "", stop_kind};
  if (!findings.trouble.empty()) return {Outcome::kFailed, last_exit_code, why};
  if (findings.left_running || !complete) return {Outcome::kFailed, kExitTrouble, why};
  return {Outcome::kSucceeded, 0, ""};
}

}  // namespace muster
