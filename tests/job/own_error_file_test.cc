// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/own_error_file.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "job/job_story.h"

namespace muster {

namespace {

using nlohmann::json;

constexpr const char* kFull =
    R"({"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "Traceback",
    "timestamp": "1700000000"}}, "more": [1]})";

const auto kNow = std::chrono::system_clock::from_time_t(JobStory::kStartSeconds);

JobStory failed(int code, int signal = 0) {
  JobStory story;
  story.start(1).start_attempt(1);
  event::FailureFound found = story.failure(0);
  found.exit_code = code;
  found.signal = signal;
  story.say(found).ends(Outcome::kFailed, code);
  return story;
}

}  // namespace

TEST_CASE("the root cause's error file is passed on with its exit code") {
  auto text = own_error_file(failed(5).state, kFull, kNow);
  REQUIRE(text);
  json expected = json::parse(kFull);
  expected["message"]["errorCode"] = 5;
  CHECK(json::parse(*text) == expected);
}

TEST_CASE("a signal is passed on as a negative code") {
  auto text = own_error_file(failed(137, SIGKILL).state, kFull, kNow);
  REQUIRE(text);
  CHECK(json::parse(*text)["message"]["errorCode"] == -9);
}

TEST_CASE("an error file of plain text is passed on as it is") {
  auto text = own_error_file(failed(5).state, R"({"message": "plain text"})", kNow);
  REQUIRE(text);
  CHECK(json::parse(*text) == json::parse(R"({"message": "plain text"})"));
}

TEST_CASE("without a readable error file of the root cause nothing is written") {
  for (const char* text : {"", "{", "{}", "\xFF"}) {
    CAPTURE(text);
    CHECK_FALSE(own_error_file(failed(5).state, text, kNow));
  }
}

TEST_CASE("a success writes nothing") {
  JobStory story;
  story.start(1).start_attempt(1).exits(0, 0).ends(Outcome::kSucceeded, 0);
  CHECK_FALSE(own_error_file(story.state, kFull, kNow));
}

TEST_CASE("a program that could not be started is muster's own message") {
  JobStory story;
  story.start(1).start_attempt(0);
  event::FailureFound found = story.failure(0, "/nonexistent: not found");
  found.pid = 0;
  found.kind = "exec_not_found";
  story.say(found).ends(Outcome::kFailed, 127);
  auto text = own_error_file(story.state, "", kNow);
  REQUIRE(text);
  json value = json::parse(*text);
  CHECK(value["message"]["message"] == "exec_not_found: /nonexistent: not found");
  CHECK(value["message"]["extraInfo"]["timestamp"] == std::to_string(JobStory::kStartSeconds));
  CHECK(value["message"]["extraInfo"]["py_callstack"] == "");
}

TEST_CASE("a stop by signal is muster's own message with number and name") {
  JobStory story;
  story.start(1).start_attempt(1).say(
      event::SignalReceived{SIGTERM, 7, 0, "root, kill", false, ""});
  story.ends(Outcome::kStopped, 143);
  auto text = own_error_file(story.state, kFull, kNow);
  REQUIRE(text);
  CHECK(json::parse(*text)["message"]["message"] ==
        "SignalException: Process 99 got signal: 15 (SIGTERM from pid 7 (root, kill))");
}

}  // namespace muster
