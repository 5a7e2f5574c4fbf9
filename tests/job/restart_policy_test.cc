// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/restart_policy.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

RestartDecision decide(int used, int max, bool can_heal = true, bool always = false) {
  event::FailureFound root;
  root.kind = "python_import_error";
  root.can_heal = can_heal;
  return decide_restart(root, {used, max, always});
}

}  // namespace

TEST_CASE("without a budget nothing is restarted and the report says why") {
  CHECK_FALSE(decide(0, 0).restart);
  CHECK(decide(0, 0).reason == "no restart was allowed (--max-restarts 0)");
  CHECK_FALSE(decide(0, 0, true, true).restart);
}

TEST_CASE("a restart counts attempts from one") {
  CHECK(decide(0, 2).restart);
  CHECK(decide(0, 2).reason == "restarting (attempt 2 of 3)");
  CHECK(decide(1, 2).reason == "restarting (attempt 3 of 3)");
}

TEST_CASE("a used budget ends it") {
  CHECK_FALSE(decide(2, 2).restart);
  CHECK(decide(2, 2).reason == "all 2 restarts were used");
  CHECK(decide(1, 1).reason == "the one restart was used");
}

TEST_CASE("what cannot heal is not retried unless the user insists") {
  CHECK_FALSE(decide(0, 3, false).restart);
  CHECK(decide(0, 3, false).reason ==
        "not retried: python_import_error cannot heal by itself "
        "(--restart-always retries all the same)");
  CHECK(decide(0, 3, false, true).restart);
}

TEST_CASE("no attempt begins beside what is left of the one before") {
  event::FailureFound root;
  RestartDecision decision = decide_restart(root, {0, 3, true, true});
  CHECK_FALSE(decision.restart);
  CHECK(decision.reason == "not restarted: something of this attempt is still running");
}

}  // namespace muster
