// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/failure_policy.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

using namespace std::chrono_literals;

std::string policy_text(const std::string& text) {
  const auto policy = parse_failure_policy(text);
  return policy ? failure_policy_text(*policy) : "error: " + policy.error().message;
}

std::string limit_text(const std::string& text) {
  const auto limit = parse_same_failure_limit(text);
  return limit ? same_failure_limit_text(*limit) : "error: " + limit.error().message;
}

std::string backoff_text(const std::string& text) {
  const auto backoff = parse_restart_backoff(text);
  return backoff ? restart_backoff_text(*backoff) : "error: " + backoff.error().message;
}

}  // namespace

TEST_CASE("a failure policy has one way of being written") {
  CHECK(policy_text("") == "");
  CHECK(policy_text("oom_kill=stop") == "oom_kill=stop");
  CHECK(policy_text(" any = restart , oom_kill=stop,gpu_fault=stop-and-exclude-node") ==
        "gpu_fault=stop-and-exclude-node,oom_kill=stop,any=restart");
}

TEST_CASE("a failure's own rule comes before the one for any") {
  const auto policy = parse_failure_policy("any=stop,segfault=restart");
  REQUIRE(policy);
  CHECK(policy->action_for("segfault") == FailureAction::kRestart);
  CHECK(policy->action_for("killed") == FailureAction::kStop);
  CHECK_FALSE(parse_failure_policy("segfault=restart")->action_for("killed"));
}

TEST_CASE("a failure policy that is none says what is wrong with it") {
  CHECK(policy_text("oom_kill") == "error: expected KIND=restart|stop|stop-and-exclude-node, ...");
  CHECK(policy_text("OOM=stop") == "error: expected KIND=restart|stop|stop-and-exclude-node, ...");
  CHECK(policy_text("a=stop,,b=stop").starts_with("error: expected"));
  CHECK(policy_text("oom_kill=halt") ==
        "error: 'halt' for oom_kill is none of restart, stop and stop-and-exclude-node");
  CHECK(policy_text("oom_kill=stop,oom_kill=restart") == "error: oom_kill is there twice");
  CHECK(policy_text(std::string(65, 'k') + "=stop").starts_with("error: expected"));
}

TEST_CASE("a failure policy has a longest text") {
  std::string text = "k=stop";
  for (int i = 0; text.size() < kMaxPolicyText - 20; ++i)
    text += ",k" + std::to_string(i) + "=stop";
  CHECK(parse_failure_policy(text));
  text += std::string(kMaxPolicyText + 1 - text.size(), ' ');
  CHECK(policy_text(text) == "error: is longer than 1024 characters");
}

TEST_CASE("a limit of equal failures is a number and minutes") {
  CHECK(limit_text("3/10") == "3/10");
  CHECK(limit_text(" 5 / 0.05 ") == "5/0.05");
  CHECK(limit_text("0") == "0");
  CHECK(parse_same_failure_limit("3/10")->within == 10min);
  CHECK(parse_same_failure_limit("3/0.05")->within == 3s);
  CHECK(limit_text(limit_text("3/3.33333")) == limit_text("3/3.33333"));
  for (const char* wrong : {"", "3", "3/", "/10", "3/10/2", "three/10", "3/0", "3/-1", "3/nan"})
    CHECK(limit_text(wrong) == "error: expected N/M, N failures within M minutes, or 0");
  CHECK(limit_text("1/10") == "error: N is 2 to 1000, or the whole is 0");
  CHECK(limit_text("1001/10") == "error: N is 2 to 1000, or the whole is 0");
}

TEST_CASE("a back-off is one time or a first and a longest") {
  CHECK(backoff_text("0") == "0");
  CHECK(backoff_text("1:60") == "1:60");
  CHECK(backoff_text("10") == "10");
  CHECK(backoff_text("0.5:2.25") == "0.5:2.25");
  CHECK(backoff_text("0:60") == "0");
  CHECK(parse_restart_backoff("0.5:2")->most == 2s);
  for (const char* wrong : {"", "a", "1:", ":1", "1:2:3", "-1"})
    CHECK(backoff_text(wrong) == "error: expected seconds, or FIRST:MOST, at most a year");
  CHECK(backoff_text("2:1") == "error: the most is less than the first");
}

}  // namespace muster
