// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include "supervisor/diagnosis/failure_rules.h"
#include "supervisor/diagnosis/kinds.h"
#include "supervisor/diagnosis/rules.h"
#include "supervisor/diagnosis/text_pattern.h"

namespace muster {

namespace {

using Stream = FailureRule::Stream;

bool ended_so(const FailureRule& rule, const Facts& facts) {
  const int signal = facts.status.signal;
  if (rule.signal != 0) return signal == rule.signal;
  if (rule.exit_code) return signal == 0 && facts.status.exit_code == *rule.exit_code;
  return signal == 0 || signal == SIGABRT;
}

std::optional<FoundLine> find_text(const FailureRule& rule, const Facts& facts) {
  if (rule.stream != Stream::kStdout) {
    for (size_t i = 0; i < facts.last_words.size(); ++i)
      if (match_text(rule.text, facts.last_words[i])) return facts.last_word_lines[i];
    if (auto at = find_in(rule.text, facts.stderr_lines, rule.within))
      return FoundLine{facts.stderr_lines[*at], "stderr", *at};
  }
  if (rule.stream != Stream::kStderr) {
    if (auto at = find_in(rule.text, facts.stdout_lines, rule.within))
      return FoundLine{facts.stdout_lines[*at], "stdout"};
  }
  return std::nullopt;
}

Finding finding(const FailureRule& rule, std::optional<FoundLine> line) {
  Finding found;
  found.kind = rule.kind;
  found.victim = rule.victim.value_or(failure_kind(rule.kind).victim);
  if (line && found.victim && !rule.text.empty()) {
    if (auto match = match_text(rule.text, line->text)) found.blames = match->ranks;
  }
  found.line = std::move(line);
  found.own = true;
  found.by_text = !rule.text.empty();
  found.reason = rule.reason;
  found.hint = rule.hint;
  found.heals = rule.heals;
  return found;
}

}  // namespace

std::optional<Finding> find_own(const Facts& facts) {
  if (facts.evidence.own_rules == nullptr || !facts.started()) return std::nullopt;
  for (const FailureRule& rule : facts.evidence.own_rules->rules) {
    if (!ended_so(rule, facts)) continue;
    std::optional<FoundLine> line = rule.text.empty() ? line_of_end(facts) : find_text(rule, facts);
    if (rule.text.empty() || line) return finding(rule, std::move(line));
  }
  return std::nullopt;
}

}  // namespace muster
