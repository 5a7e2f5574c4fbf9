// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/stall_stacks.h"

#include <doctest/doctest.h>

#include "job/job_story.h"

using namespace muster;

namespace {

Stall idle(std::vector<int> suspects, std::vector<int> waiting) {
  return {"all_idle", std::move(suspects), std::move(waiting), 5'000'000, "all ranks are idle"};
}

event::EvidenceSaved saved(std::vector<std::string> groups) {
  event::EvidenceSaved one;
  one.groups = std::move(groups);
  return one;
}

// Two nodes, of two ranks and of three.
AttemptState two_nodes() {
  AttemptState attempt;
  attempt.node_count = 2;
  attempt.nodes = {{0, "node-a", 0, 2}, {1, "node-b", 2, 3}};
  return attempt;
}

}  // namespace

TEST_CASE("who is elsewhere than most by the stacks is the suspect, with where it waits") {
  AttemptState attempt;
  const Stall told =
      told_by_stacks(idle({}, {0, 1, 2, 3}), attempt,
                     {saved({"ranks 0, 2-3: recv < step",
                             "rank 1 differs: wait < load (train.py:9) < ... < main"})});
  CHECK(told.kind == "rank_missing");
  CHECK(told.suspects == std::vector<int>{1});
  CHECK(told.waiting == std::vector<int>{0, 2, 3});
  CHECK(told.text == "rank 1 differs: wait < load (train.py:9); no sign of life for 5.0 s");
  CHECK(told.quiet_us == 5'000'000);
}

TEST_CASE("ranks of several nodes are compared with each other, and named with their host") {
  const Stall told = told_by_stacks(
      idle({}, {0, 1, 2, 3}), two_nodes(),
      {saved({"ranks 0-1: recv < step"}), saved({"rank 2: recv < step", "rank 3: load"})});
  CHECK(told.suspects == std::vector<int>{3});
  CHECK(told.text == "rank 3 on node-b differs: load; no sign of life for 5.0 s");
}

TEST_CASE("several that differ are all suspects") {
  const Stall told =
      told_by_stacks(idle({}, {0, 1, 2, 3, 4}), two_nodes(),
                     {saved({"ranks 0-2: recv", "rank 3 differs: load", "rank 4 differs: save"})});
  CHECK(told.suspects == std::vector<int>{3, 4});
  CHECK(told.waiting == std::vector<int>{0, 1, 2});
  CHECK(told.text == "ranks 3-4 on node-b differ: load; no sign of life for 5.0 s");
}

TEST_CASE("stacks tell nothing where there is no majority, or nobody else to compare with") {
  AttemptState attempt;
  for (const auto& groups : std::vector<std::vector<std::string>>{
           {},
           {"ranks 0-1: recv"},
           {"rank 0: recv", "rank 1: load"},
           {"ranks 0-2: recv", "rank 3 differs: nothing could be seen"},
           {"ranks 0-2: recv", "rank 7 differs: load"}}) {
    CAPTURE(groups);
    const Stall told = told_by_stacks(idle({}, {0, 1, 2, 3}), attempt, {saved(groups)});
    CHECK(told.kind == "all_idle");
    CHECK(told.suspects.empty());
    CHECK(told.text == "all ranks are idle");
  }
}

TEST_CASE("a suspect that is known otherwise stays the suspect") {
  AttemptState attempt;
  const Stall told = told_by_stacks(idle({2}, {0, 1}), attempt,
                                    {saved({"ranks 0, 2: recv", "rank 1 differs: load"})});
  CHECK(told.suspects == std::vector<int>{2});
}
