// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/failure_policy.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "supervisor/cli/values.h"

namespace muster {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kAny = "any";
constexpr size_t kMaxKindText = 64;
constexpr int64_t kMinuteMs = 60'000;

struct ActionName {
  FailureAction action;
  std::string_view name;
};
constexpr std::array kActionNames = {
    ActionName{FailureAction::kRestart, "restart"},
    ActionName{FailureAction::kStop, "stop"},
    ActionName{FailureAction::kExcludeNode, "stop-and-exclude-node"},
};

std::optional<FailureAction> action_named(std::string_view name) {
  for (const ActionName& one : kActionNames) {
    if (one.name == name) return one.action;
  }
  return std::nullopt;
}

std::string_view name_of_action(FailureAction action) {
  for (const ActionName& one : kActionNames) {
    if (one.action == action) return one.name;
  }
  return "";
}

// As the table of kinds has them.
bool is_kind(std::string_view text) {
  if (text.empty() || text.size() > kMaxKindText) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// A number with at most three digits behind the point, which are not 0.
std::string thousandths_text(int64_t thousandths) {
  std::string text = std::to_string(thousandths / 1000);
  std::string rest = std::to_string(thousandths % 1000 + 1000).substr(1);
  while (!rest.empty() && rest.back() == '0')
    rest.pop_back();
  return rest.empty() ? text : text + "." + rest;
}

}  // namespace

std::optional<FailureAction> FailurePolicy::action_for(std::string_view kind) const {
  std::optional<FailureAction> otherwise;
  for (const Rule& rule : rules) {
    if (rule.kind == kind) return rule.action;
    if (rule.kind == kAny) otherwise = rule.action;
  }
  return otherwise;
}

Result<FailurePolicy> parse_failure_policy(std::string_view text) {
  FailurePolicy policy;
  if (trim(text).empty()) return policy;
  if (text.size() > kMaxPolicyText) {
    return Error{0, "is longer than " + std::to_string(kMaxPolicyText) + " characters"};
  }
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string kind(trim(std::string_view(part).substr(0, equals)));
    if (equals == std::string::npos || !is_kind(kind)) {
      return Error{0, "expected KIND=restart|stop|stop-and-exclude-node, ..."};
    }
    const std::string name(trim(std::string_view(part).substr(equals + 1)));
    const auto action = action_named(name);
    if (!action) {
      return Error{
          0, "'" + name + "' for " + kind + " is none of restart, stop and stop-and-exclude-node"};
    }
    for (const FailurePolicy::Rule& rule : policy.rules) {
      if (rule.kind == kind) return Error{0, kind + " is there twice"};
    }
    policy.rules.push_back({kind, *action});
  }
  return policy;
}

std::string failure_policy_text(const FailurePolicy& policy) {
  std::vector<FailurePolicy::Rule> rules = policy.rules;
  std::sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.kind == kAny, a.kind) < std::make_pair(b.kind == kAny, b.kind);
  });
  std::string text;
  for (const FailurePolicy::Rule& rule : rules) {
    text += text.empty() ? "" : ",";
    text += rule.kind + "=" + std::string(name_of_action(rule.action));
  }
  return text;
}

Result<SameFailureLimit> parse_same_failure_limit(std::string_view text) {
  const Error expected{0, "expected N/M, N failures within M minutes, or 0"};
  const std::vector<std::string> parts = split(text, '/');
  const std::optional<int64_t> times = parse_int(parts[0]);
  if (!times || parts.size() > 2) return expected;
  if (*times == 0 && parts.size() == 1) return SameFailureLimit{};
  if (parts.size() != 2) return expected;
  const std::optional<double> minutes = parse_double(parts[1]);
  constexpr double kMostMinutes = 366 * 24 * 60;
  if (!minutes || !(*minutes >= 0.001) || *minutes > kMostMinutes) return expected;
  // The first failure is no repetition of anything.
  if (*times < 2 || *times > kMaxSameFailures) {
    return Error{0, "N is 2 to " + std::to_string(kMaxSameFailures) + ", or the whole is 0"};
  }
  // In thousandths, so that what is written of it means the same.
  const int64_t within = std::llround(*minutes * 1000) * (kMinuteMs / 1000);
  return SameFailureLimit{static_cast<int>(*times), milliseconds(within)};
}

std::string same_failure_limit_text(const SameFailureLimit& limit) {
  if (limit.times == 0) return "0";
  return std::to_string(limit.times) + "/" +
         thousandths_text(limit.within.count() / (kMinuteMs / 1000));
}

Result<RestartBackoff> parse_restart_backoff(std::string_view text) {
  const std::vector<std::string> parts = split(text, ':');
  const auto first = parse_seconds(parts[0]);
  const auto most = parse_seconds(parts.back());
  if (!first || !most || parts.size() > 2) {
    return Error{0, "expected seconds, or FIRST:MOST, at most a year"};
  }
  if (*most < *first) return Error{0, "the most is less than the first"};
  return RestartBackoff{*first, *first == milliseconds(0) ? milliseconds(0) : *most};
}

std::string restart_backoff_text(const RestartBackoff& backoff) {
  const std::string first = seconds_text(backoff.first);
  return backoff.most == backoff.first ? first : first + ":" + seconds_text(backoff.most);
}

std::string seconds_text(milliseconds time) {
  return thousandths_text(time.count());
}

}  // namespace muster
