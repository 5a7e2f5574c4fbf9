// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"

namespace muster {

// A user's own rule: what a failure of their program looks like, and what it is then called.
// docs/failures.md describes the file.
struct FailureRule {
  enum class Stream { kAny, kStdout, kStderr };

  std::string kind;
  std::string text;  // text_pattern.h, "" if the end alone tells
  Stream stream = Stream::kAny;
  size_t within = 60;  // among the last so many lines
  std::optional<int> exit_code;
  int signal = 0;              // 0: for what ended itself, by an exit code or by abort()
  std::optional<bool> heals;   // else as the kind does; an own kind may heal
  std::optional<bool> victim;  // likewise; an own kind is a cause
  std::string reason;
  std::string hint;
};

struct FailureRules {
  std::vector<FailureRule> rules;
};

// Limits of the file.
inline constexpr size_t kMaxRulesFile = 256 * 1024;  // bytes
inline constexpr size_t kMaxOwnRules = 200;
inline constexpr size_t kMaxRuleText = 200;    // bytes of a text
inline constexpr size_t kMaxRuleStars = 8;     // '*' in a text
inline constexpr size_t kMaxRuleKind = 40;     // bytes of a kind
inline constexpr size_t kMaxRuleWords = 300;   // bytes of a reason or a hint
inline constexpr size_t kMaxRuleLines = 5000;  // of "within"

// What is wrong names the rule and the key: "rule 3 (nan_loss): \"text\": ...".
Result<FailureRules> parse_failure_rules(std::string_view json);

// Of the file of --failure-rules; no rules for "". Blocks.
Result<FailureRules> read_failure_rules(const std::string& path);

}  // namespace muster
