// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/restart_policy.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

using namespace std::chrono_literals;

struct Question {
  event::FailureFound root;
  RestartRules rules;
  RestartSituation situation;

  explicit Question(int used = 0, int max = 3) {
    root.kind = "python_import_error";
    root.host = "node-b";
    rules.max = max;
    situation.used = used;
  }
  Question& policy(const std::string& text) {
    rules.policy = *parse_failure_policy(text);
    return *this;
  }
  RestartDecision answer() const { return decide_restart(root, rules, situation); }
};

}  // namespace

TEST_CASE("without a budget nothing is restarted and the report says why") {
  Question question(0, 0);
  CHECK_FALSE(question.answer().restart);
  CHECK(question.answer().reason == "no restart was allowed (--max-restarts 0)");
  question.rules.restart_always = true;
  CHECK_FALSE(question.answer().restart);
}

TEST_CASE("a restart counts attempts from one") {
  CHECK(Question(0, 2).answer().restart);
  CHECK(Question(0, 2).answer().charged);
  CHECK(Question(0, 2).answer().reason == "restarting (attempt 2 of 3)");
  CHECK(Question(1, 2).answer().reason == "restarting (attempt 3 of 3)");
}

TEST_CASE("a used budget ends it") {
  CHECK_FALSE(Question(2, 2).answer().restart);
  CHECK(Question(2, 2).answer().reason == "no restart is left (--max-restarts 2)");
}

TEST_CASE("what cannot heal is not retried unless the user insists") {
  Question question;
  question.root.can_heal = false;
  CHECK_FALSE(question.answer().restart);
  CHECK(question.answer().reason ==
        "not retried: python_import_error cannot heal by itself "
        "(--restart-always retries all the same)");
  question.policy("python_import_error=restart");
  CHECK(question.answer().restart);
  question.policy("any=restart");
  CHECK(question.answer().restart);
  question.policy("segfault=restart");
  CHECK_FALSE(question.answer().restart);
  question.rules.restart_always = true;
  CHECK(question.answer().restart);
}

TEST_CASE("no attempt begins beside what is left of the one before") {
  Question question;
  question.rules.restart_always = true;
  question.policy("any=stop-and-exclude-node").situation.left_running = true;
  CHECK_FALSE(question.answer().restart);
  CHECK(question.answer().reason == "not restarted: something of this attempt is still running");
}

TEST_CASE("a policy of restart is no way around the budget") {
  CHECK_FALSE(Question(3, 3).policy("any=restart").answer().restart);
}

TEST_CASE("a policy of stop ends the job, whatever is left of the budget") {
  const RestartDecision decision = Question().policy("python_import_error=stop").answer();
  CHECK_FALSE(decision.restart);
  CHECK(decision.reason == "not retried: --failure-policy stops the job for python_import_error");
}

TEST_CASE("a lost node costs nothing unless a policy stops the job for it") {
  Question question(0, 0);
  question.root.kind = "node_lost";
  question.root.rank = -1;
  question.situation.charged = false;
  CHECK(question.answer().restart);
  CHECK_FALSE(question.answer().charged);
  CHECK_FALSE(question.policy("node_lost=stop").answer().restart);
}

TEST_CASE("a node is left out without a charge, if it can be") {
  Question question(0, 0);
  question.policy("any=stop-and-exclude-node");
  const RestartDecision decision = question.answer();
  CHECK(decision.restart);
  CHECK(decision.exclude);
  CHECK_FALSE(decision.charged);
  CHECK(decision.delay == 0ms);
  question.situation.cannot_exclude = "there is no other";
  CHECK_FALSE(question.answer().restart);
  CHECK(question.answer().reason ==
        "not retried: --failure-policy excludes the node for python_import_error, but there is no "
        "other");
}

TEST_CASE("the same failure too often ends the job and says so") {
  Question question;
  question.situation.same = 3;
  CHECK(question.answer().restart);
  question.rules.same_limit = {3, 10min};
  CHECK_FALSE(question.answer().restart);
  CHECK(question.answer().reason ==
        "not retried: the same failure came 3 times within 10 minutes (--same-failure-limit "
        "3/10)");
  question.situation.same = 2;
  CHECK(question.answer().restart);
}

TEST_CASE("the first restart of a row comes at once, later ones after longer and longer") {
  const RestartBackoff backoff{1s, 5s};
  CHECK(restart_delay(backoff, 1) == 0s);
  CHECK(restart_delay(backoff, 2) == 1s);
  CHECK(restart_delay(backoff, 3) == 2s);
  CHECK(restart_delay(backoff, 4) == 4s);
  CHECK(restart_delay(backoff, 5) == 5s);
  CHECK(restart_delay(backoff, 1'000) == 5s);
  CHECK(restart_delay({0s, 5s}, 9) == 0s);
  CHECK(restart_delay({24h * 366, 24h * 366}, 1'000) == 24h * 366);
  Question question;
  question.rules.backoff = backoff;
  question.situation.in_a_row = 2;
  CHECK(question.answer().delay == 1s);
}

TEST_CASE("kinds that no failure has are warned of, with the one that was meant") {
  const auto warnings = [](const std::string& text) {
    FailureRule own;
    own.kind = "nan_loss";
    return policy_warnings(*parse_failure_policy(text), FailureRules{{own}});
  };
  CHECK(warnings("any=stop,segfault=stop,node_lost=stop,hung=stop,nan_loss=stop").empty());
  REQUIRE(warnings("segfalt=stop").size() == 1);
  CHECK(warnings("segfalt=stop")[0] ==
        "--failure-policy names segfalt, a kind that no failure has (did you mean segfault?)");
}

}  // namespace muster
