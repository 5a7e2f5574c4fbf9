// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/restart_policy.h"

#include <algorithm>

#include "supervisor/cli/suggest.h"
#include "supervisor/diagnosis/kinds.h"

namespace muster {

namespace {

using std::chrono::milliseconds;

// A node that is left out costs nothing of the budget, as one that is lost: there are only so many.
RestartDecision without_node(const event::FailureFound& root_cause,
                             const RestartSituation& situation) {
  if (!situation.cannot_exclude.empty()) {
    return {false, "not retried: --failure-policy excludes the node for " + root_cause.kind +
                       ", but " + situation.cannot_exclude};
  }
  RestartDecision decision{true, "restarting without " + root_cause.host};
  decision.charged = false;
  decision.exclude = true;
  return decision;
}

std::string limit_text(const SameFailureLimit& limit) {
  const std::string text = same_failure_limit_text(limit);
  const std::string minutes = text.substr(text.find('/') + 1);
  return "not retried: the same failure came " + std::to_string(limit.times) + " times within " +
         minutes + (minutes == "1" ? " minute" : " minutes") + " (--same-failure-limit " + text +
         ")";
}

}  // namespace

std::vector<std::string> policy_warnings(const FailurePolicy& policy, const FailureRules& own) {
  std::vector<std::string> kinds = {"any"};
  for (const FailureKind& kind : failure_kinds())
    kinds.emplace_back(kind.name);
  for (const FailureRule& rule : own.rules)
    kinds.push_back(rule.kind);
  std::vector<std::string> warnings;
  for (const FailurePolicy::Rule& rule : policy.rules) {
    if (std::find(kinds.begin(), kinds.end(), rule.kind) != kinds.end()) continue;
    const std::string near = nearest(rule.kind, kinds);
    warnings.push_back("--failure-policy names " + rule.kind + ", a kind that no failure has" +
                       (near.empty() ? "" : " (did you mean " + near + "?)"));
  }
  return warnings;
}

milliseconds restart_delay(const RestartBackoff& backoff, int in_a_row) {
  if (in_a_row < 2 || backoff.first.count() == 0) return milliseconds(0);
  milliseconds delay = backoff.first;
  for (int i = 2; i < in_a_row && delay < backoff.most; ++i)
    delay *= 2;
  return std::min(delay, backoff.most);
}

RestartDecision decide_restart(const event::FailureFound& root_cause, const RestartRules& rules,
                               const RestartSituation& situation) {
  const auto action = rules.policy.action_for(root_cause.kind);
  if (situation.left_running) {
    return {false, "not restarted: something of this attempt is still running"};
  }
  if (action == FailureAction::kStop) {
    return {false, "not retried: --failure-policy stops the job for " + root_cause.kind};
  }
  if (action == FailureAction::kExcludeNode) return without_node(root_cause, situation);
  if (!situation.charged) {
    RestartDecision decision{true, "restarting with the nodes that are here"};
    decision.charged = false;
    return decision;
  }
  if (rules.max <= 0) return {false, "no restart was allowed (--max-restarts 0)"};
  if (situation.used >= rules.max) {
    return {false, "no restart is left (--max-restarts " + std::to_string(rules.max) + ")"};
  }
  if (!root_cause.can_heal && !rules.restart_always && action != FailureAction::kRestart) {
    return {false, "not retried: " + root_cause.kind +
                       " cannot heal by itself (--restart-always retries all the same)"};
  }
  const SameFailureLimit& limit = rules.same_limit;
  if (limit.times > 0 && situation.same >= limit.times) return {false, limit_text(limit)};
  RestartDecision decision{true, "restarting (attempt " + std::to_string(situation.used + 2) +
                                     " of " + std::to_string(rules.max + 1) + ")"};
  decision.delay = restart_delay(rules.backoff, situation.in_a_row);
  return decision;
}

}  // namespace muster
