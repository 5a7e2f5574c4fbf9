// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"

namespace muster {

// What the user wants to follow a failure: the grammars of --failure-policy, --same-failure-limit
// and --restart-backoff, pure. Each has one way of being written, by which nodes compare theirs.

enum class FailureAction {
  kRestart,      // even if it cannot heal
  kStop,         // the job
  kExcludeNode,  // the job goes on without the node where it happened
};

inline constexpr size_t kMaxPolicyText = 1024;
inline constexpr int kMaxSameFailures = 1000;

struct FailurePolicy {
  struct Rule {
    std::string kind;  // of docs/failures.md, or "any"
    FailureAction action = FailureAction::kRestart;
  };
  std::vector<Rule> rules;

  // By the rule of this kind, else by the one of "any", else nothing.
  std::optional<FailureAction> action_for(std::string_view kind) const;
};

// "oom_kill=stop,gpu_fault=stop-and-exclude-node,any=restart"; each kind once.
Result<FailurePolicy> parse_failure_policy(std::string_view text);
std::string failure_policy_text(const FailurePolicy& policy);

// So many failures of the same cause within that time end the job; 0 is no limit.
struct SameFailureLimit {
  int times = 0;
  std::chrono::milliseconds within{0};
};
// "3/10": 3 within 10 minutes; "0".
Result<SameFailureLimit> parse_same_failure_limit(std::string_view text);
std::string same_failure_limit_text(const SameFailureLimit& limit);

// The first restart of a row comes at once, the next after `first`, each further one after twice
// the time, up to `most`.
struct RestartBackoff {
  std::chrono::milliseconds first{0};  // 0: all come at once
  std::chrono::milliseconds most{0};
};
// "1:60" in seconds; "10" is the same delay each time; "0".
Result<RestartBackoff> parse_restart_backoff(std::string_view text);
std::string restart_backoff_text(const RestartBackoff& backoff);

// 0.5, 90, 12.25: a number of milliseconds as seconds, without needless digits.
std::string seconds_text(std::chrono::milliseconds time);

}  // namespace muster
