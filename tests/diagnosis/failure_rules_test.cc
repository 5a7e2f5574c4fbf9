// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/failure_rules.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <signal.h>

#include "diagnosis/run_program.h"
#include "supervisor/diagnosis/diagnose.h"

namespace muster {

namespace {

std::string problem(const std::string& json) {
  Result<FailureRules> rules = parse_failure_rules(json);
  return rules ? "" : rules.error().message;
}

std::string problem_of_rule(const std::string& rule) {
  return problem("{\"rules\": [" + rule + "]}");
}

struct Own {
  explicit Own(const std::string& list) {
    Result<FailureRules> parsed = parse_failure_rules("{\"rules\": [" + list + "]}");
    REQUIRE(parsed);
    rules = *parsed;
  }
  event::FailureFound judge(Evidence evidence) const {
    evidence.own_rules = &rules;
    return diagnose(evidence);
  }
  FailureRules rules;
};

Evidence ended(int wait_status, std::string stderr_text, std::string stdout_text = "") {
  Evidence evidence;
  evidence.wait_status = wait_status;
  evidence.stderr_tail = std::move(stderr_text);
  evidence.stdout_tail = std::move(stdout_text);
  return evidence;
}

const char* const kNan =
    R"({"kind": "nan_loss", "text": "loss is NaN*step", "heals": false,
        "reason": "training diverged", "hint": "Lower the learning rate."})";

}  // namespace

TEST_CASE("a rule of the user's gives kind, line, reason and hint, and whether it may heal") {
  const Own own(kNan);
  const event::FailureFound failure =
      own.judge(ended(3 << 8, "epoch 1\nerror: loss is NaN at step 7\nbye\n"));
  CHECK(failure.kind == "nan_loss");
  CHECK(failure.line == "error: loss is NaN at step 7");
  CHECK(failure.message == "error: loss is NaN at step 7, exited with code 3");
  CHECK(failure.note == "training diverged; Lower the learning rate.");
  CHECK_FALSE(failure.can_heal);
  CHECK_FALSE(failure.victim);
  CHECK(own.judge(ended(3 << 8, "loss is 7\n")).kind == "exit_code");
}

TEST_CASE("a rule of the user's goes before muster's own, in exceptions too") {
  const Own own(kNan);
  const char* const text =
      "Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\n"
      "FloatingPointError: loss is NaN in step 7: No space left on device\n";
  CHECK(own.judge(ended(1 << 8, text)).kind == "nan_loss");
  CHECK(own.judge(ended(SIGABRT, "loss is NaN at step 7\n")).kind == "nan_loss");
  // But what killed it from outside is what it is.
  CHECK(own.judge(ended(SIGKILL, "loss is NaN at step 7\n")).kind == "killed");
}

TEST_CASE("the way it ended alone can be a rule") {
  const Own own(
      R"({"kind": "no_license", "exit_code": 77, "reason": "no license was free"},
         {"kind": "watchdog", "signal": "SIGUSR1", "victim": true},
         {"kind": "cuda_oom", "exit_code": 9, "text": "arena exhausted"})");
  const event::FailureFound license = own.judge(ended(77 << 8, "one\ntwo\n"));
  CHECK(license.kind == "no_license");
  CHECK(license.message == "no license was free, exited with code 77");
  CHECK(license.can_heal);
  const event::FailureFound watchdog = own.judge(ended(SIGUSR1, ""));
  CHECK(watchdog.kind == "watchdog");
  CHECK(watchdog.victim);
  CHECK(own.judge(ended(9 << 8, "arena exhausted\n")).kind == "cuda_oom");
  CHECK(own.judge(ended(8 << 8, "arena exhausted\n")).kind == "exit_code");
  Evidence missing;
  missing.spawn_errno = ENOENT;
  CHECK(own.judge(missing).kind == "exec_not_found");
}

TEST_CASE("a rule may be bound to a stream and to the last lines") {
  const Own own(
      R"({"kind": "out", "text": "bad news", "stream": "stdout"},
         {"kind": "last", "text": "worse news", "within": 2})");
  CHECK(own.judge(ended(3 << 8, "bad news\n")).kind == "exit_code");
  CHECK(own.judge(ended(3 << 8, "", "bad news\n")).line_source == "stdout");
  CHECK(own.judge(ended(3 << 8, "worse news\na\n")).kind == "last");
  CHECK(own.judge(ended(3 << 8, "worse news\na\nb\n")).kind == "exit_code");
}

TEST_CASE("a rule may name the ranks that it blames") {
  const Own own(R"({"kind": "lost_peer", "text": "peer # is gone", "victim": true})");
  CHECK(own.judge(ended(3 << 8, "peer 4 is gone\n")).blames == "4");
}

TEST_CASE("what is wrong with a file is said with the rule and the key") {
  CHECK(problem("") == "it is not JSON");
  CHECK(problem("[") == "it is not JSON");
  CHECK(problem("[]") == "it must be {\"rules\": [...]}");
  CHECK(problem("{\"rules\": [], \"more\": 1}") == "it must be {\"rules\": [...]}");
  CHECK(problem("{\"rules\": []}").empty());
  CHECK(problem_of_rule("3") == "rule 1: it is not an object");
  CHECK(problem_of_rule(R"({"text": "x"})") == "rule 1: \"kind\": is missing");
  CHECK(problem_of_rule(R"({"kind": "Big", "text": "x"})") ==
        "rule 1 (Big): \"kind\": may have small letters, digits and _ only");
  CHECK(problem_of_rule(R"({"kind": "x"})").find("what is it known by") != std::string::npos);
  CHECK(problem_of_rule(R"({"kind": "x", "txet": "y"})") ==
        "rule 1 (x): \"txet\": is not a key of a rule");
  CHECK(problem_of_rule(R"({"kind": "x", "text": ""})") == "rule 1 (x): \"text\": is empty");
  CHECK(problem_of_rule(R"({"kind": "x", "text": "*"})") ==
        "rule 1 (x): \"text\": fits every line");
  CHECK(problem_of_rule(R"({"kind": "x", "text": "a\nb"})").find("control") != std::string::npos);
  CHECK(problem_of_rule(R"({"kind": "x", "exit_code": 0})").find("from 1 to 255") !=
        std::string::npos);
  CHECK(problem_of_rule(R"({"kind": "x", "signal": "KILL"})").find("SIGABRT") != std::string::npos);
  CHECK(problem_of_rule(R"({"kind": "x", "signal": "SIGABRT", "exit_code": 3})")
            .find("cannot both") != std::string::npos);
  CHECK(problem_of_rule(R"({"kind": "x", "text": "y", "heals": "no"})").find("true or false") !=
        std::string::npos);
  CHECK(problem_of_rule(R"({"kind": "x", "text": "y", "stream": "log"})").find("stdout") !=
        std::string::npos);
}

TEST_CASE("a file of rules has limits") {
  auto rule = [](const std::string& text) { return R"({"kind": "x", "text": ")" + text + R"("})"; };
  CHECK(problem_of_rule(rule(std::string(kMaxRuleText, 'a'))).empty());
  CHECK_FALSE(problem_of_rule(rule(std::string(kMaxRuleText + 1, 'a'))).empty());
  std::string stars = "a";
  for (size_t i = 0; i < kMaxRuleStars; ++i)
    stars += "*a";
  CHECK(problem_of_rule(rule(stars)).empty());
  CHECK(problem_of_rule(rule(stars + "*")).find("stars") != std::string::npos);
  std::string many;
  for (size_t i = 0; i < kMaxOwnRules; ++i)
    many += (many.empty() ? "" : ",") + rule("a");
  CHECK(problem_of_rule(many).empty());
  CHECK(problem_of_rule(many + "," + rule("a")).find("more than 200 rules") != std::string::npos);
  CHECK(problem(std::string(kMaxRulesFile + 1, ' ')).find("larger") != std::string::npos);
  CHECK_FALSE(problem("{\"rules\": " + std::string(100'000, '[')).empty());
  CHECK_FALSE(problem("{\"rules\": " + std::string(50, '[') + std::string(50, ']') + "}").empty());
  CHECK_FALSE(problem_of_rule(R"({"kind": "x", "text": "a", "within": 5001})").empty());
}

TEST_CASE("a file that cannot be read is named") {
  TestFolder folder;
  Result<FailureRules> missing = read_failure_rules(folder.file("absent.json"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.ends_with("absent.json: No such file or directory"));
  const std::string path = folder.write("rules.json", "{\"rules\": [3]}");
  CHECK(read_failure_rules(path).error().message == path + ": rule 1: it is not an object");
  CHECK(read_failure_rules("")->rules.empty());
}

}  // namespace muster
