// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/admission.h"

namespace muster {

std::string nnodes_text(const JobTerms& terms) {
  std::string max = std::to_string(terms.max_nodes);
  return terms.min_nodes == terms.max_nodes ? max : std::to_string(terms.min_nodes) + ":" + max;
}

std::string terms_difference(const JobTerms& joiner, const JobTerms& job,
                             const std::string& host_name) {
  std::string text;
  auto differ = [&](const std::string& option, const std::string& here, const std::string& there) {
    if (here == there) return;
    text += (text.empty() ? "" : "; ") + option + " is " + here + " here and " + there + " at " +
            host_name;
  };
  auto given = [](bool value) { return std::string(value ? "given" : "not given"); };
  auto set = [](bool value) { return std::string(value ? "set" : "not set"); };
  differ("--nnodes", nnodes_text(joiner), nnodes_text(job));
  differ("--max-restarts", std::to_string(joiner.max_restarts), std::to_string(job.max_restarts));
  differ("--restart-always", given(joiner.restart_always), given(job.restart_always));
  auto policy = [](const std::string& text) { return text.empty() ? "not given" : text; };
  differ("--failure-policy", policy(joiner.failure_policy), policy(job.failure_policy));
  differ("--same-failure-limit", joiner.same_failure_limit, job.same_failure_limit);
  differ("--restart-backoff", joiner.restart_backoff, job.restart_backoff);
  differ("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", set(!joiner.agent_store), set(!job.agent_store));
  return text;
}

std::optional<std::string> why_not_admitted(const NodeFacts& facts, const JobTerms& terms,
                                            const std::string& host_name, const Roster& roster,
                                            const std::map<std::string, std::string>& excluded) {
  if (facts.id.empty()) return "it has no id";
  if (auto found = excluded.find(facts.host); found != excluded.end()) {
    return excluded_text(facts.host, found->second);
  }
  if (std::string text = terms_difference(facts.terms, terms, host_name); !text.empty()) {
    return "it must be started with the same options on every node: " + text;
  }
  if (facts.workers < 1 || facts.workers > kMaxWorkersPerNode) {
    return "a node has 1 to " + std::to_string(kMaxWorkersPerNode) + " workers, not " +
           std::to_string(facts.workers);
  }
  if (facts.attempt > kMaxAttempt) return "it speaks of attempt " + std::to_string(facts.attempt);
  if (facts.node_rank) {
    const int rank = *facts.node_rank;
    if (rank < 0 || rank >= terms.max_nodes) {
      return "--node-rank " + std::to_string(rank) + " is out of range: --nnodes " +
             nnodes_text(terms) + " has the ranks 0 to " + std::to_string(terms.max_nodes - 1);
    }
    if (const Node* holder = roster.holder_of(rank)) {
      return "--node-rank " + std::to_string(rank) + " is taken by " + holder->facts.host +
             " (pid " + std::to_string(holder->facts.pid) + ")";
    }
  }
  if (roster.staying() >= static_cast<size_t>(terms.max_nodes) + kMaxSpares) {
    return "the job has all its nodes and " + std::to_string(kMaxSpares) + " spares";
  }
  return std::nullopt;
}

std::string excluded_text(const std::string& host, const std::string& why) {
  return host + " is excluded from this job: " + why + " (--failure-policy)";
}

}  // namespace muster
