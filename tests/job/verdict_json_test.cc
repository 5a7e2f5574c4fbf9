// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/verdict_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "job/job_story.h"

namespace muster {

namespace {

using Json = nlohmann::json;

JobStory failed_story() {
  JobStory story;
  story.start(3, 1).start_attempt(3).after_ms(1'000).exits(1, 3 << 8);
  story.stops(0, 15).stops(2, 15).exits(0, 15).exits(2, 15);
  event::FailureFound found = story.failure(1, "bad \xff batch");
  found.line = "ValueError: bad";
  return story.say(found);
}

}  // namespace

TEST_CASE("a failure that another attempt follows makes a verdict") {
  JobStory story = failed_story();
  CHECK_FALSE(makes_verdict(story.state, story.last().body));
  story.say(event::RestartScheduled{1, 1, 1, true});
  CHECK(makes_verdict(story.state, story.last().body));
  const std::string text = verdict_json(story.state);
  CHECK(text.find('\n') == text.size() - 1);
  const Json json = Json::parse(text);
  CHECK(json["schema"] == "muster.verdict.v1");
  CHECK(json["next"] == "restart");
  CHECK(json["exit_code"] == nullptr);
  CHECK(json["attempt"] == 0);
  CHECK(json["failure"]["rank"] == 1);
  CHECK(json["failure"]["line"] == "ValueError: bad");
  CHECK(json["failure"]["message"] == "bad \xEF\xBF\xBD batch");
  REQUIRE(json["victims"].size() == 1);
  CHECK(json["victims"][0]["ranks"] == "0,2");
  CHECK(json["restarts"]["used"] == 1);
}

TEST_CASE("the end of a job that failed makes one, with the reason that nothing follows") {
  JobStory story = failed_story();
  story.say(event::RestartDenied{0, "no restart is left"}).ends(Outcome::kFailed, 3);
  CHECK(makes_verdict(story.state, story.last().body));
  const Json json = Json::parse(verdict_json(story.state));
  CHECK(json["next"] == "end");
  CHECK(json["exit_code"] == 3);
  CHECK(json["no_restart"] == "no restart is left");
}

TEST_CASE("a job that nobody's failure ended has a verdict without one") {
  JobStory story;
  story.start(1).say(event::JobEnded{Outcome::kFailed, 1, "not enough nodes came"});
  const Json json = Json::parse(verdict_json(story.state));
  CHECK(json["failure"] == nullptr);
  CHECK(json["why"] == "not enough nodes came");
  CHECK_FALSE(json.contains("attempt"));
}

TEST_CASE("success, a stop and a change of nodes make no verdict") {
  for (Outcome outcome : {Outcome::kSucceeded, Outcome::kStopped}) {
    JobStory story = failed_story();
    story.ends(outcome, 0);
    CHECK_FALSE(makes_verdict(story.state, story.last().body));
  }
  JobStory story;
  story.start(1).start_attempt(1).say(event::RestartScheduled{1, 0, 1, false});
  CHECK_FALSE(makes_verdict(story.state, story.last().body));
}

}  // namespace muster
