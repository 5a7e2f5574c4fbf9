// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/state.h"

#include <doctest/doctest.h>

#include "job/job_story.h"
#include "supervisor/job/event_json.h"
#include "supervisor/job/report.h"

namespace muster {

namespace {

void check_equal(const JobState& a, const JobState& b) {
  CHECK(a.phase == b.phase);
  CHECK(a.started == b.started);
  CHECK(a.last_us == b.last_us);
  CHECK(a.restarts_used == b.restarts_used);
  CHECK(a.master_port == b.master_port);
  CHECK(a.leftovers.size() == b.leftovers.size());
  CHECK(a.troubles.size() == b.troubles.size());
  REQUIRE(a.attempts.size() == b.attempts.size());
  for (size_t i = 0; i < a.attempts.size(); ++i) {
    CHECK(a.attempts[i].ranks == b.attempts[i].ranks);
    CHECK(a.attempts[i].death_order == b.attempts[i].death_order);
    CHECK(a.attempts[i].root_cause.has_value() == b.attempts[i].root_cause.has_value());
    CHECK(a.attempts[i].other_causes.size() == b.attempts[i].other_causes.size());
  }
  CHECK(summary_json(a) == summary_json(b));
  LogPath none = [](int, int, Stream) { return std::string(); };
  CHECK(final_report(a, none) == final_report(b, none));
}

}  // namespace

TEST_CASE("a state rebuilt from its written events is the same at every step") {
  JobStory story = eventful_story();
  JobState live, rebuilt;
  for (const Event& event : story.events) {
    Result<Event> read = event_from_json(event_to_json(event));
    REQUIRE(read);
    apply(live, event);
    apply(rebuilt, *read);
    check_equal(live, rebuilt);
  }
}

TEST_CASE("of stalls and of what was saved an attempt keeps the last ones") {
  JobStory story;
  story.start(2, 1).start_attempt(2);
  const AttemptState& attempt = story.state.attempts[0];
  for (size_t i = 0; i < kMaxPastStalls + 4; ++i) {
    story.say(event::StallFound{0, "all_idle", "", "0-1", static_cast<int64_t>(i), "idle"});
    REQUIRE(attempt.stall);
    // One that nobody saw end makes room for the next.
    if (i % 2 == 0) story.say(event::StallOver{0, static_cast<int64_t>(i), "rank 0 wrote"});
  }
  REQUIRE(attempt.past_stalls.size() == kMaxPastStalls);
  CHECK(attempt.past_stalls.back().found.since_us == kMaxPastStalls + 2);
  CHECK(attempt.past_stalls.back().lasted_us == kMaxPastStalls + 2);
  CHECK(attempt.past_stalls[kMaxPastStalls - 2].lasted_us == -1);
  CHECK(attempt.past_stalls.front().found.since_us == 3);
  for (size_t i = 0; i < kMaxEvidenceSaved + 1; ++i)
    story.say(event::EvidenceSaved{0, "node-a", "asked", std::to_string(i), {}, ""});
  REQUIRE(attempt.saved.size() == kMaxEvidenceSaved);
  CHECK(attempt.saved.front().folder == "1");
  story.say(event::StallOver{7, 1, "of no attempt"});
  CHECK(attempt.stall);
}

TEST_CASE("a restart is due when its delay is over, whatever a damaged record says") {
  JobStory story;
  story.start(1, 1).start_attempt(1).after_ms(50).exits(0, 256);
  story.say(event::RestartScheduled{1, 1, 1, true, 2'000});
  CHECK(story.state.restart_due_us == 2'050'000);
  story.say(event::RestartScheduled{1, 1, 1, true, -5});
  CHECK(story.state.restart_due_us == 50'000);
  story.say(event::RestartScheduled{1, 1, 1, true, INT64_MAX});
  CHECK(story.state.restart_due_us > 2'050'000);
}

TEST_CASE("phases follow the events") {
  JobStory story;
  story.start(2, 1);
  CHECK(story.state.phase == Phase::kStarting);
  story.start_attempt(0, 2);
  story.say(event::WorkerSpawned{0, 0, 0, 10});
  CHECK(story.state.phase == Phase::kStarting);
  story.say(event::WorkerSpawned{0, 1, 1, 11});
  CHECK(story.state.phase == Phase::kRunning);
  story.exits(0, 256).stops(1, 15);
  CHECK(story.state.phase == Phase::kStopping);
  story.exits(1, 15).say(event::RestartScheduled{1, 1, 1, true});
  CHECK(story.state.phase == Phase::kRestarting);
  CHECK(story.state.restarts_used == 1);
  story.start_attempt(2);
  CHECK(story.state.phase == Phase::kRunning);
  story.ends(Outcome::kSucceeded, 0);
  CHECK(story.state.phase == Phase::kEnded);
}

TEST_CASE("deaths keep the order in which they were learnt") {
  JobStory story;
  story.start(4).start_attempt(3, 4).say(event::SpawnFailed{0, 3, 3, 2, "x"});
  story.exits(2, 0).exits(0, 256).exits(1, 0);
  CHECK(story.state.current()->death_order == std::vector<int>{3, 2, 0, 1});
}

TEST_CASE("only a living rank that we signalled to stop it is a victim") {
  JobStory story;
  story.start(4).start_attempt(4).exits(3, 256);
  story.stops(3, 15);                        // dead already
  story.stops(0, 10, StopReason::kNone);     // forwarded
  story.stops(1, 15).stops(1, 9);            // the ladder
  story.stops(-1, 9, StopReason::kFailure);  // a descendant of nobody
  const AttemptState& attempt = *story.state.current();
  CHECK(attempt.ranks[3].stopped_for == StopReason::kNone);
  CHECK(attempt.ranks[0].stopped_for == StopReason::kNone);
  CHECK(attempt.ranks[1].stopped_for == StopReason::kFailure);
  CHECK(attempt.ranks[1].stop_signal == 9);
  REQUIRE(ranks_stopped_by_us(attempt).size() == 1);
  CHECK(ranks_stopped_by_us(attempt)[0]->rank == 1);
}

TEST_CASE("one that hung had to be stopped, and is no victim") {
  JobStory story;
  story.start(3).start_attempt(3);
  for (int rank : {0, 1, 2})
    story.stops(rank, 6).exits(rank, 6);
  CHECK(ranks_stopped_by_us(*story.state.current()).size() == 3);
  story.say(story.failure(1, "rank 1 differs"));
  const auto victims = ranks_stopped_by_us(*story.state.current());
  REQUIRE(victims.size() == 2);
  CHECK(victims[0]->rank == 0);
  CHECK(victims[1]->rank == 2);
}

TEST_CASE("the first reason to stop a rank stays") {
  JobStory story;
  story.start(2).start_attempt(2).exits(0, 256).stops(1, 15);
  story.stops(1, 2, StopReason::kSignal);
  CHECK(story.state.current()->ranks[1].stopped_for == StopReason::kFailure);
}

TEST_CASE("the first failure of an attempt is its root cause, later ones stand beside it") {
  JobStory story;
  story.start(3, 1).start_attempt(3).say(story.failure(1)).say(story.failure(2));
  CHECK(story.state.current()->root_cause->rank == 1);
  REQUIRE(story.state.current()->other_causes.size() == 1);
  story.say(event::RestartScheduled{1, 1, 1, true}).start_attempt(3);
  CHECK_FALSE(story.state.current()->root_cause);
}

TEST_CASE("a forwarded signal stops nothing and the first stop signal stays") {
  JobStory story;
  story.start(1).start_attempt(1);
  story.say(event::SignalReceived{10, 1, 0, "", true, ""});
  CHECK_FALSE(story.state.stop_signal);
  story.say(event::SignalReceived{15, 1, 0, "", false, ""});
  story.say(event::SignalReceived{2, 0, 0, "", false, ""});
  CHECK(story.state.stop_signal->signal == 15);
}

TEST_CASE("damaged events change nothing and break nothing") {
  JobStory story;
  story.say(event::WorkerSpawned{0, 0, 0, 1});  // before any attempt
  story.start(2).start_attempt(2);
  story.say(event::WorkerSpawned{0, 9, 9, 1}).say(event::WorkerSpawned{0, -1, -1, 1});
  story.say(event::WorkerExited{7, 0, 0, 1, 0, 0}).say(event::SpawnFailed{0, 5, 5, 1, ""});
  story.say(event::FirstOutput{0, 44, Stream::kStdout});
  story.exits(0, 0).exits(0, 256);  // the second one is a repeat
  CHECK(story.state.current()->ranks.size() == 2);
  CHECK(story.state.current()->ranks[0].wait_status == 0);
  CHECK(story.state.current()->death_order == std::vector<int>{0});
  story.start_attempt(0, 2'000'000'000);
  CHECK(story.state.current()->ranks.size() <= 1'000'000);
}

}  // namespace muster
