// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/torchelastic_events.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "job/job_story.h"

namespace muster {

namespace {

using nlohmann::json;

std::vector<json> lines_of(const JobStory& story) {
  JobState state;
  std::vector<json> lines;
  for (const Event& event : story.events) {
    apply(state, event);
    for (const std::string& line : torchelastic_events(state, event, {"trainer", "static"})) {
      CHECK(line.find('\n') == std::string::npos);
      lines.push_back(json::parse(line));
    }
  }
  return lines;
}

std::vector<std::string> states_of(const std::vector<json>& lines) {
  std::vector<std::string> states;
  for (const json& line : lines) {
    std::string state = line["metadata"]["state"];
    CHECK(line["name"] == "torchelastic.worker.status." + state);
    states.push_back(line["source"].get<std::string>() + " " + state);
  }
  return states;
}

}  // namespace

TEST_CASE("a success gives torchrun's events in torchrun's order") {
  JobStory story;
  story.start(1).start_attempt(1).after_ms(2500).exits(0, 0).ends(Outcome::kSucceeded, 0);
  std::vector<json> lines = lines_of(story);
  CHECK(states_of(lines) == std::vector<std::string>{"AGENT RENDEZVOUS",
                                                     "AGENT ASSIGN_WORKER_RANKS", "WORKER START",
                                                     "WORKER SUCCEEDED", "AGENT SUCCEEDED"});
  CHECK(lines[0]["timestamp"] == JobStory::kStartSeconds);
  CHECK(lines[4]["metadata"]["total_run_time"] == 2);
  const json& worker = lines[3]["metadata"];
  CHECK(worker["worker_id"] == "1000");
  CHECK(worker["role"] == "trainer");
  CHECK(worker["rdzv_backend"] == "static");
  json details = json::parse(worker["metadata"].get<std::string>());
  CHECK(details["entry_point"] == "train.py");
  CHECK(details["exit_code"] == json::array({0}));
  CHECK(details["worker_pid"] == json::array({1000}));
}

TEST_CASE("a failure marks the culprit FAILED, those stopped TERMINATED, and the agent FAILED") {
  JobStory story;
  story.start(2).start_attempt(2).exits(1, 3 << 8).stops(0, SIGTERM).exits(0, SIGTERM);
  story.say(story.failure(1)).ends(Outcome::kFailed, 3);
  std::vector<json> lines = lines_of(story);
  std::vector<std::string> states = states_of(lines);
  CHECK(std::vector<std::string>(states.begin() + 4, states.end()) ==
        std::vector<std::string>{"WORKER TERMINATED", "WORKER FAILED", "AGENT FAILED"});
  json details = json::parse(lines[4]["metadata"]["metadata"].get<std::string>());
  CHECK(details["exit_code"] == json::array({-15}));
  CHECK(lines[5]["metadata"]["raw_error"] == R"({"message":"exited with code 3"})");
}

TEST_CASE("each restart is a rendezvous of its own") {
  std::vector<std::string> states = states_of(lines_of(eventful_story()));
  CHECK(std::count(states.begin(), states.end(), "AGENT RENDEZVOUS") == 2);
  CHECK(std::count(states.begin(), states.end(), "WORKER START") == 5);
  CHECK(states.back() == "AGENT FAILED");
}

}  // namespace muster
