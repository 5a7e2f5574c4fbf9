// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/log_choice.h"

#include <doctest/doctest.h>

#include "diagnosis/run_program.h"
#include "status/story_job.h"

namespace muster {

namespace {

// Two nodes with two ranks each, seen from the first; the second attempt runs.
struct TwoNodes : StoryJob {
  TwoNodes() {
    dir = "/runs/x";
    story.start(2);
    for (int attempt : {0, 1}) {
      event::AttemptStarted started;
      started.attempt = attempt;
      started.world_size = 4;
      started.node_count = 2;
      started.nodes = {{0, "node-a", 0, 2}, {1, "node-b", 2, 2}};
      story.say(started);
    }
  }
  Result<std::vector<ChosenLog>> choose(
      std::vector<std::pair<std::string, std::string>> query,
      DefaultAttempts attempts = DefaultAttempts::kCurrent) const {
    HttpServerRequest request;
    request.query = std::move(query);
    return choose_logs(*this, request, attempts);
  }
};

std::string names(const Result<std::vector<ChosenLog>>& logs) {
  if (!logs) return std::to_string(logs.error().code) + " " + logs.error().message;
  std::string text;
  for (const ChosenLog& log : *logs) {
    text += std::to_string(log.attempt) + "/" + std::to_string(log.rank) + "/" +
            std::string(stream_name(log.stream)) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("lists of ranks are read whole or not at all") {
  CHECK(parse_rank_list("3") == RankList{{3, 3}});
  CHECK(parse_rank_list("0-7,9") == RankList{{0, 7}, {9, 9}});
  for (const char* text :
       {"", ",", "1,", ",1", "a", "-1", "1-", "3-1", "1--2", "1 ", "1-2-3", "99999999999", "0x1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_rank_list(text));
  }
  std::string many = "0";
  for (int i = 1; i < 5'000; ++i)
    many += ",0";
  CHECK_FALSE(parse_rank_list(many));
}

TEST_CASE("without a choice it is the current attempt, or all of them") {
  const TwoNodes job;
  CHECK(names(job.choose({})) ==
        "1/0/stdout 1/0/stderr 1/1/stdout 1/1/stderr 1/2/stdout 1/2/stderr 1/3/stdout 1/3/stderr ");
  const auto all = job.choose({}, DefaultAttempts::kAll);
  REQUIRE(all);
  CHECK(all->size() == 16);
}

TEST_CASE("attempt, ranks and streams choose") {
  const TwoNodes job;
  CHECK(names(job.choose({{"attempt", "0"}, {"ranks", "3,1"}, {"streams", "stderr"}})) ==
        "0/1/stderr 0/3/stderr ");
  CHECK(names(job.choose({{"ranks", "0"}, {"streams", "stderr,stdout"}})) ==
        "1/0/stdout 1/0/stderr ");
  CHECK(names(job.choose({{"attempt", ""}, {"ranks", ""}, {"streams", "stdout"}})) ==
        "1/0/stdout 1/1/stdout 1/2/stdout 1/3/stdout ");
}

TEST_CASE("a choice of nothing says why") {
  const TwoNodes job;
  CHECK(names(job.choose({{"attempt", "7"}})) == "404 there is no attempt 7 so far");
  CHECK(names(job.choose({{"attempt", "x"}})) == "400 attempt= is the number of an attempt");
  CHECK(names(job.choose({{"ranks", "4-9"}})) == "404 none of these ranks is known here");
  CHECK(names(job.choose({{"ranks", "1-"}})) == "400 ranks= is a list like 0-7,9");
  CHECK(names(job.choose({{"streams", "stdin"}})) ==
        "400 streams= is stdout, stderr or stdout,stderr");
  StoryJob nothing_yet;
  HttpServerRequest request;
  const auto none = choose_logs(nothing_yet, request, DefaultAttempts::kCurrent);
  REQUIRE(none);
  CHECK(none->empty());
}

TEST_CASE("a log is a file by its local rank, or on another node") {
  const TwoNodes job;
  const auto here = find_log(job, 0, 1, Stream::kStderr);
  REQUIRE(here);
  CHECK(here->here);
  CHECK(here->path == "/runs/x/attempt_0/1/stderr.log");
  const auto there = find_log(job, 1, 3, Stream::kStdout);
  REQUIRE(there);
  CHECK_FALSE(there->here);
  CHECK(there->path == "");
  CHECK(there->host == "node-b");
  CHECK(there->node == 1);
  CHECK(there->local_rank == 1);
  CHECK_FALSE(find_log(job, 1, 4, Stream::kStdout));
  CHECK_FALSE(find_log(job, 2, 0, Stream::kStdout));
  CHECK_FALSE(find_log(job, 0, -1, Stream::kStdout));
}

TEST_CASE("when the run is over, other nodes' logs are files if their folder is seen here") {
  TwoNodes job;
  const TestFolder shared;
  event::NodeJoined joined;
  joined.id = "n1";
  joined.log_dir = shared.path();
  job.story.say(joined);
  event::AttemptStarted started;
  started.attempt = 2;
  started.world_size = 4;
  started.node_count = 2;
  started.nodes = {{0, "node-a", 0, 2}, {1, "node-b", 2, 2, "n1"}};
  job.story.say(started);
  job.is_live = false;
  // A folder that is not that of a run is not taken for it.
  CHECK_FALSE(find_log(job, 2, 3, Stream::kStdout)->here);
  shared.write("events.jsonl", "");
  const auto log = find_log(job, 2, 3, Stream::kStdout);
  REQUIRE(log);
  CHECK(log->here);
  CHECK(log->path == shared.path() + "/attempt_2/1/stdout.log");
  job.is_live = true;
  CHECK_FALSE(find_log(job, 2, 3, Stream::kStdout)->here);
  CHECK(log_place(job.story.state, *log) == "node-b:" + shared.path() + "/attempt_2/1/stdout.log");
}

TEST_CASE("without log files there is no path") {
  TwoNodes job;
  job.dir = "";
  const auto log = find_log(job, 0, 1, Stream::kStderr);
  REQUIRE(log);
  CHECK(log->here);
  CHECK(log->path == "");
}

}  // namespace muster
