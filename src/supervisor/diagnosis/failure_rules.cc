// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/failure_rules.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "loop/unique_fd.h"
#include "supervisor/diagnosis/text_lines.h"
#include "supervisor/diagnosis/wait_status.h"

namespace muster {

namespace {

using nlohmann::json;

constexpr int kMaxNesting = 8;  // of the JSON; a rule has no depth

// Reads one rule; the first thing that is wrong is kept and ends it.
class RuleReader {
 public:
  explicit RuleReader(const json& object) : object_(object) {}

  Result<FailureRule> read() {
    if (!object_.is_object()) return Error{0, "it is not an object"};
    FailureRule rule;
    for (const auto& [key, value] : object_.items()) {
      if (!read_key(rule, key, value)) wrong(key, "is not a key of a rule");
      if (!problem_.empty()) return Error{0, problem_};
    }
    check(rule);
    if (!problem_.empty()) return Error{0, problem_};
    return rule;
  }

 private:
  void wrong(const std::string& key, const std::string& what) {
    if (problem_.empty()) problem_ = "\"" + cut_line(clean_line(key), kMaxRuleKind) + "\": " + what;
  }

  // False if there is no such key.
  bool read_key(FailureRule& rule, const std::string& key, const json& value) {
    if (key == "kind") return text(key, value, kMaxRuleKind, rule.kind);
    if (key == "text") return text(key, value, kMaxRuleText, rule.text);
    if (key == "reason") return text(key, value, kMaxRuleWords, rule.reason);
    if (key == "hint") return text(key, value, kMaxRuleWords, rule.hint);
    if (key == "stream") return stream(key, value, rule);
    if (key == "within") return within(key, value, rule);
    if (key == "exit_code") return exit_code(key, value, rule);
    if (key == "signal") return signal(key, value, rule);
    if (key == "heals") return boolean(key, value, rule.heals);
    if (key == "victim") return boolean(key, value, rule.victim);
    return false;
  }

  bool text(const std::string& key, const json& value, size_t max, std::string& out) {
    if (!value.is_string()) return wrong(key, "must be text"), true;
    const auto& words = value.get_ref<const std::string&>();
    if (words.empty()) wrong(key, "is empty");
    if (words.size() > max) wrong(key, "is longer than " + std::to_string(max) + " bytes");
    out = clean_line(words);
    if (out != words) wrong(key, "has control characters");
    return true;
  }

  bool boolean(const std::string& key, const json& value, std::optional<bool>& out) {
    if (!value.is_boolean()) return wrong(key, "must be true or false"), true;
    out = value.get<bool>();
    return true;
  }

  // Whole numbers from `least` to `most`.
  std::optional<int64_t> number(const std::string& key, const json& value, int64_t least,
                                int64_t most) {
    const bool fits = value.is_number_integer() && value >= least && value <= most;
    if (fits) return value.get<int64_t>();
    wrong(key,
          "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return std::nullopt;
  }

  bool stream(const std::string& key, const json& value, FailureRule& rule) {
    if (value == "any") {
      rule.stream = FailureRule::Stream::kAny;
    } else if (value == "stdout") {
      rule.stream = FailureRule::Stream::kStdout;
    } else if (value == "stderr") {
      rule.stream = FailureRule::Stream::kStderr;
    } else {
      wrong(key, "must be \"any\", \"stdout\" or \"stderr\"");
    }
    return true;
  }

  bool within(const std::string& key, const json& value, FailureRule& rule) {
    if (auto lines = number(key, value, 1, static_cast<int64_t>(kMaxRuleLines)))
      rule.within = static_cast<size_t>(*lines);
    return true;
  }

  bool exit_code(const std::string& key, const json& value, FailureRule& rule) {
    if (auto code = number(key, value, 1, 255)) rule.exit_code = static_cast<int>(*code);
    return true;
  }

  bool signal(const std::string& key, const json& value, FailureRule& rule) {
    const std::string name = value.is_string() ? value.get<std::string>() : "";
    for (int i = 1; i <= SIGRTMAX; ++i)
      if (signal_name(i) == name && name.starts_with("SIG")) rule.signal = i;
    if (rule.signal == 0) wrong(key, "must be the name of a signal, such as \"SIGABRT\"");
    return true;
  }

  void check(const FailureRule& rule) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (rule.kind.empty()) wrong("kind", "is missing");
    if (rule.kind.find_first_not_of(kLetters) != std::string::npos)
      wrong("kind", "may have small letters, digits and _ only");
    if (rule.text.empty() && !rule.exit_code && rule.signal == 0)
      wrong("text", "is missing, and so are \"exit_code\" and \"signal\": what is it known by?");
    if (rule.exit_code && rule.signal != 0)
      wrong("signal", "and \"exit_code\" cannot both be how it ended");
    const auto stars = std::count(rule.text.begin(), rule.text.end(), '*');
    if (static_cast<size_t>(stars) > kMaxRuleStars)
      wrong("text", "has more than " + std::to_string(kMaxRuleStars) + " stars");
    if (!rule.text.empty() && rule.text.find_first_not_of("*#^ ") == std::string::npos)
      wrong("text", "fits every line");
  }

  const json& object_;
  std::string problem_;
};

// nlohmann's parser recurses no deeper than the callback lets it build, so that depth is counted.
json parse_flat(std::string_view text, bool& too_deep) {
  const json::parser_callback_t watch = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxNesting;
    return depth <= kMaxNesting;
  };
  return json::parse(text, watch, false);
}

std::string rule_name(size_t index, const json& object) {
  std::string name = "rule " + std::to_string(index + 1);
  if (!object.is_object() || !object.contains("kind") || !object["kind"].is_string()) return name;
  return name + " (" + cut_line(clean_line(object["kind"].get<std::string>()), kMaxRuleKind) + ")";
}

}  // namespace

Result<FailureRules> parse_failure_rules(std::string_view text) {
  if (text.size() > kMaxRulesFile)
    return Error{0, "it is larger than " + std::to_string(kMaxRulesFile) + " bytes"};
  bool too_deep = false;
  const json root = parse_flat(text, too_deep);
  if (root.is_discarded()) return Error{0, "it is not JSON"};
  if (too_deep) return Error{0, "it is nested too deeply"};
  if (!root.is_object() || root.size() != 1 || !root.contains("rules") || !root["rules"].is_array())
    return Error{0, "it must be {\"rules\": [...]}"};
  const json& list = root["rules"];
  if (list.size() > kMaxOwnRules)
    return Error{0, "it has more than " + std::to_string(kMaxOwnRules) + " rules"};
  FailureRules rules;
  for (size_t i = 0; i < list.size(); ++i) {
    Result<FailureRule> rule = RuleReader(list[i]).read();
    if (!rule) return Error{0, rule_name(i, list[i]) + ": " + rule.error().message};
    rules.rules.push_back(std::move(*rule));
  }
  return rules;
}

Result<FailureRules> read_failure_rules(const std::string& path) {
  if (path.empty()) return FailureRules{};
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, path);
  // A FIFO, as of <(...), may come in pieces.
  std::string text;
  std::array<char, 16 * 1024> chunk{};
  while (text.size() <= kMaxRulesFile) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, path);
    if (got == 0) break;
    text.append(chunk.data(), static_cast<size_t>(got));
  }
  Result<FailureRules> rules = parse_failure_rules(text);
  if (!rules) return Error{0, path + ": " + rules.error().message};
  return rules;
}

}  // namespace muster
