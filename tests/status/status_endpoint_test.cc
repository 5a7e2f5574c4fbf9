// SPDX-License-Identifier: Apache-2.0
#include "status/server_fixture.h"
#include "supervisor/status/sample_history.h"

using namespace muster;

namespace {

int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

std::string error_of(const HttpResponse& answer) {
  return nlohmann::json::parse(answer.body).at("error").at("message");
}

}  // namespace

TEST_CASE_FIXTURE(ServerTest, "status is one answer about the whole job") {
  job.story.start(2).start_attempt(2);
  start();
  const nlohmann::json status = json("/status");
  CHECK(status["phase"] == "running");
  CHECK(status["ranks"].size() == 2);
  CHECK(json("/status?ranks=1")["ranks"].size() == 1);
}

TEST_CASE_FIXTURE(ServerTest, "a list of ranks that is none is told what is wrong with it") {
  job.story.start(2).start_attempt(2);
  start();
  for (const char* bad : {"x", "1-", "-1", "3-1", "1,,2", "", "0-99999999999999999999"}) {
    CAPTURE(bad);
    const HttpResponse answer = get(std::string("/status?ranks=") + bad);
    CHECK(answer.status == 400);
    CHECK(error_of(answer) == "ranks= is a list of ranks and ranges");
  }
  CHECK(error_of(get("/status?ranks=2")) == "ranks=: ranks here are 0-1");
}

TEST_CASE_FIXTURE(ServerTest, "status waits a moment for what is measured now") {
  job.story.start(1).start_attempt(1);
  job.rank_samples.resize(1);
  job.rank_samples[0].time_us = now_us() - 60'000'000;
  job.rank_samples[0].step = 1;
  start();
  loop.post([this] {
    job.rank_samples[0].time_us = now_us();
    job.rank_samples[0].step = 2;
  });
  CHECK(json("/status")["ranks"][0]["step"] == 2);
}

TEST_CASE_FIXTURE(ServerTest, "status does not wait for what nobody measures") {
  job.story.start(1).start_attempt(1);
  start();
  CHECK(json("/status")["ranks"][0]["state"] == "running");
  job.is_live = false;
  CHECK(json("/status")["ranks"][0]["state"] == "lost");
}

TEST_CASE_FIXTURE(ServerTest, "who asks for status and leaves costs nothing") {
  job.story.start(1).start_attempt(1);
  start();
  stream("/status");
  run_until([] { return false; }, Milliseconds(30));
  streams.clear();
  CHECK(json("/status")["phase"] == "running");
}

TEST_CASE_FIXTURE(ServerTest, "metrics are Prometheus' text") {
  job.story.start(1).start_attempt(1);
  start();
  const HttpResponse answer = get("/metrics");
  CHECK(answer.status == 200);
  CHECK(answer.header("content-type") == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(answer.body.find("muster_job_phase{phase=\"running\"} 1\n") != std::string::npos);
}

TEST_CASE_FIXTURE(ServerTest, "the history of samples is read from the run's folder") {
  job.story.start(2).start_attempt(2);
  job.dir = folder.file("");
  std::vector<RankSample> samples(2);
  samples[1].rank = 1;
  std::string lines;
  for (int i = 1; i <= 50; ++i) {
    samples[0].step = i;
    lines += history_line(0, i, samples);
  }
  folder.write("samples.jsonl", lines);
  start();
  CHECK(json("/api/v1/samples?history=1")["samples"].size() == 100);
  const nlohmann::json one = json("/api/v1/samples?history=1&ranks=0")["samples"];
  REQUIRE(one.size() == 50);
  CHECK(one[49]["step"] == 50);
  CHECK(one[49]["time_us"] == 50);
  CHECK(json("/api/v1/samples?history=1&limit=10")["samples"].size() <= 12);
  CHECK(get("/api/v1/samples?history=1&limit=0").status == 400);
  CHECK(get("/api/v1/samples?history=1&limit=1x").status == 400);
  CHECK(get("/api/v1/samples?ranks=x").status == 400);
}

TEST_CASE_FIXTURE(ServerTest, "a run without logs has no history") {
  job.story.start(1).start_attempt(1);
  start();
  CHECK(json("/api/v1/samples?history=1")["samples"].empty());
}
