// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang/hung_failure.h"

#include <doctest/doctest.h>

#include "job/job_story.h"

using namespace muster;

namespace {

Stall stall(std::vector<int> suspects) {
  return {"stopped", std::move(suspects), {0}, 300'000'000, "rank 1 is stopped"};
}

}  // namespace

TEST_CASE("the suspect is the root, with what was saved of the job") {
  JobStory story;
  story.start(3).start_attempt(3).after_ms(5'000).say(event::FirstOutput{0, 0, Stream::kStdout});
  event::EvidenceSaved saved;
  saved.host = "node-a";
  saved.folder = "/runs/4f1c/attempt_0/stacks_0";
  saved.groups = {"ranks 0, 2: futex_wait", "rank 1 differs: do_signal_stop"};
  const event::FailureFound found = hung_failure(story.state, stall({1, 2}), true, {saved});
  CHECK(found.kind == "hung");
  CHECK(found.rank == 1);
  CHECK(found.local_rank == 1);
  CHECK(found.pid == story.pid(1));
  CHECK(found.host == "node-a");
  CHECK(found.message == "rank 1 is stopped");
  CHECK(found.exit_code == 1);
  CHECK(found.can_heal);
  CHECK(found.ran_us == 5'000'000);
  CHECK(found.excerpt == saved.groups);
  CHECK(found.evidence == std::vector<std::string>{
                              "stacks of its workers on node-a in /runs/4f1c/attempt_0/stacks_0"});
}

TEST_CASE("where nobody is suspected the job as a whole is") {
  JobStory story;
  story.start(2).start_attempt(2);
  const event::FailureFound found = hung_failure(story.state, stall({}), false, {});
  CHECK(found.rank == -1);
  CHECK(found.pid == 0);
  CHECK_FALSE(found.can_heal);
  CHECK(found.excerpt.empty());
  CHECK(found.excerpt_source.empty());
}

TEST_CASE("like stacks of several nodes are told together") {
  JobStory story;
  story.start(4).start_attempt(4);
  event::EvidenceSaved a, b;
  a.groups = {"ranks 0-1: recv < step"};
  b.groups = {"rank 2: recv < step", "rank 3: load < step"};
  CHECK(hung_failure(story.state, stall({3}), false, {a, b}).excerpt ==
        std::vector<std::string>{"ranks 0-2: recv < step", "rank 3 differs: load < step"});
}

TEST_CASE("however much was saved, the failure stays small") {
  JobStory story;
  story.start(2).start_attempt(2);
  event::EvidenceSaved saved;
  saved.host = "node-a";
  saved.folder = "/f";
  for (int rank = 0; rank < 100; ++rank)
    saved.groups.push_back("rank " + std::to_string(rank) + ": f" + std::to_string(rank));
  const event::FailureFound found =
      hung_failure(story.state, stall({0}), true, std::vector<event::EvidenceSaved>(50, saved));
  CHECK(found.excerpt.size() == 12);
  CHECK(found.evidence.size() == event::kMaxEvidenceLines);
}
