// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/evidence_rounds.h"

#include <doctest/doctest.h>

#include "job/job_story.h"
#include "loop/loop_test.h"

using namespace muster;

namespace {

struct RoundsTest : LoopTest {
  JobStory story;
  std::vector<std::string> asked;
  std::string refusal;
  EvidenceRounds rounds{{loop, [this]() -> const JobState& { return story.state; },
                         [this](const std::string& why) {
                           asked.push_back(why);
                           return refusal;
                         }}};
  std::vector<event::EvidenceSaved> got;
  int done = 0;

  void start_on_two_nodes() {
    story.start(2);
    event::AttemptStarted started;
    started.node_count = 2;
    started.world_size = 2;
    started.nodes = {{0, "node-a", 0, 1}, {1, "node-b", 1, 1}};
    story.say(started);
    story.say(event::WorkerSpawned{0, 0, 0, 100});
  }
  std::string begin() {
    return rounds.begin("asked", [this](const std::vector<event::EvidenceSaved>& saved) {
      got = saved;
      ++done;
    });
  }
  void tell(const std::string& host, int attempt = 0) {
    story.say(event::EvidenceSaved{attempt, host, "asked", "/logs", {}, ""});
    rounds.observe(story.events.back());
  }
};

}  // namespace

TEST_CASE_FIXTURE(RoundsTest, "it is over when every node has told") {
  start_on_two_nodes();
  CHECK(begin() == "");
  CHECK(asked == std::vector<std::string>{"asked"});
  tell("node-b", 7);
  tell("node-b");
  CHECK(done == 0);
  tell("node-a");
  REQUIRE(done == 1);
  CHECK(got.size() == 2);
  tell("node-a");
  CHECK(done == 1);
}

TEST_CASE_FIXTURE(RoundsTest, "without workers, or without a coordinator, nothing begins") {
  CHECK(begin() == "no worker runs");
  CHECK(asked.empty());
  start_on_two_nodes();
  refusal = "there is no coordinator to ask now";
  CHECK(begin() == refusal);
  tell("node-a");
  tell("node-b");
  CHECK(done == 0);
}

TEST_CASE_FIXTURE(RoundsTest, "only so many wait at a time") {
  start_on_two_nodes();
  for (size_t i = 0; i < EvidenceRounds::kMaxRounds; ++i)
    CHECK(begin() == "");
  CHECK(begin() == "too many ask for it at the same time");
  tell("node-a");
  tell("node-b");
  CHECK(done == static_cast<int>(EvidenceRounds::kMaxRounds));
  CHECK(begin() == "");
}

TEST_CASE_FIXTURE(RoundsTest, "the end of the job is the end of those that wait") {
  start_on_two_nodes();
  CHECK(begin() == "");
  CHECK(begin() == "");
  tell("node-a");
  story.say(event::JobEnded{});
  rounds.observe(story.events.back());
  CHECK(done == 2);
  CHECK(got.size() == 1);
}
