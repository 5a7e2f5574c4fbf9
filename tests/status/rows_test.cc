// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/rows.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "job/job_story.h"
#include "supervisor/status/job_source.h"
#include "supervisor/status/job_summary.h"

using namespace muster;
using Json = nlohmann::json;

namespace {

constexpr int64_t kStartUs = JobStory::kStartSeconds * 1'000'000;

struct Rows : JobStory {
  bool live = true;
  JobView view() const { return {state, live, true, kStartUs + now_us}; }

  template <typename Write>
  static Json written(Write write) {
    std::string text;
    JsonOut out(text);
    write(out);
    return Json::parse(text);
  }
  Json job() const {
    return written([this](JsonOut& out) { write_job(out, view()); });
  }
  Json rank(int number) const {
    return written([&](JsonOut& out) {
      write_rank(out, view(), *state.current(), *state.current()->find(number));
    });
  }
  Json attempt_row(size_t index) const {
    return written([&](JsonOut& out) { write_attempt(out, view(), state.attempts[index]); });
  }
  Json node(size_t index) const {
    return written([&](JsonOut& out) { write_node(out, view(), node_rows(view()).at(index)); });
  }
  std::string rank_state(int number) const { return rank(number)["state"]; }
  std::string summary() const { return job_summary(view()); }

  // Two nodes with `workers` each, which have joined as "id-0" and "id-1" and run.
  Rows& two_nodes(int workers) {
    start(workers, 1);
    state.job.max_nodes = state.job.min_nodes = 2;
    for (int i = 0; i < 2; ++i) {
      const std::string n = std::to_string(i);
      say(event::NodeJoined{"id-" + n, "node-" + n, "10.0.0." + n, 70 + i, workers, false});
    }
    event::AttemptStarted started;
    started.attempt = ++attempt;
    started.node_count = 2;
    started.world_size = 2 * workers;
    started.nodes = {{0, "node-0", 0, workers, "id-0"}, {1, "node-1", workers, workers, "id-1"}};
    say(started);
    for (int rank = 0; rank < 2 * workers; ++rank)
      say(event::WorkerSpawned{attempt, rank, rank % workers, pid(rank)});
    return *this;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Rows, "a job's row tells its phase, its times and its summary") {
  start(2, 3).after_ms(20).start_attempt(2).after_ms(500);
  Json row = job();
  CHECK(row["api"] == 1);
  CHECK(row["phase"] == "running");
  CHECK(row["outcome"].is_null());
  CHECK(row["ended_us"].is_null());
  CHECK(row["started_us"] == kStartUs);
  CHECK(row["now_us"] == kStartUs + 520'000);
  CHECK(row["attempt"] == 0);
  CHECK(row["command"] == Json({"muster", "train.py"}));
  CHECK(row["summary"] == "2 ranks run");
  CHECK(row["waiting"].is_null());
  CHECK(row["stop"].is_null());
  exits(0, 0).exits(1, 0).ends(Outcome::kSucceeded, 0);
  row = job();
  CHECK(row["phase"] == "ended");
  CHECK(row["outcome"] == "succeeded");
  CHECK(row["exit_code"] == 0);
  CHECK(row["ended_us"] == kStartUs + 520'000);
  CHECK(row["summary"] == "2 workers finished in 520 ms");
}

TEST_CASE_FIXTURE(Rows, "before the first attempt a job has no attempt") {
  start(4);
  CHECK(job()["attempt"].is_null());
  CHECK(summary() == "starting 4 ranks");
  start_attempt(1, 4);
  CHECK(summary() == "starting: 1 of 4 ranks runs");
}

TEST_CASE_FIXTURE(Rows, "a rank's state says how it ended") {
  start(6).start_attempt(5, 6).after_ms(1000);
  say(event::SpawnFailed{0, 5, 5, 2, "not there"});
  exits(0, 0).exits(1, 3 << 8).exits(2, SIGKILL);
  stops(3, SIGTERM).exits(3, SIGTERM);
  CHECK(rank_state(0) == "exited");
  CHECK(rank_state(1) == "failed");
  CHECK(rank_state(2) == "failed");
  CHECK(rank_state(3) == "stopped");
  CHECK(rank_state(4) == "running");
  CHECK(rank_state(5) == "spawn_failed");
  CHECK(rank(2)["signal"] == "SIGKILL");
  CHECK(rank(2)["exit_code"] == 137);
  CHECK(rank(3)["stopped_for"] == "failure");
  CHECK(rank(3)["stop_signal"] == "SIGTERM");
  CHECK(rank(4)["exit_code"].is_null());
  CHECK(rank(4)["ended_us"].is_null());
  CHECK(rank(5)["pid"].is_null());
  CHECK(rank(0)["ended_us"] == kStartUs + 1'000'000);
  CHECK(rank(0)["max_rss_bytes"] == 5000 * 1024);
  const Json counts = attempt_row(0)["counts"];
  CHECK(counts["failed"] == 3);
  CHECK(counts["running"] == 1);
}

TEST_CASE_FIXTURE(Rows, "a killed run has ended without an outcome, and what ran is lost") {
  start(2).start_attempt(2).after_ms(100).say(event::FirstOutput{0, 1, Stream::kStdout});
  live = false;
  CHECK(job()["phase"] == "ended");
  CHECK(job()["outcome"].is_null());
  CHECK(rank_state(0) == "lost");
  CHECK(attempt_row(0)["state"] == "lost");
  CHECK(attempt_row(0)["ended_us"] == kStartUs + 100'000);
  CHECK(summary() == "muster was killed, or its machine went down while 2 ranks ran");
}

TEST_CASE_FIXTURE(Rows, "a failure comes with its reason, its hint and the way to its logs") {
  start(3).start_attempt(3).after_ms(1000).exits(1, 3 << 8);
  CHECK(summary().find("rank 1") == std::string::npos);
  stops(0, SIGTERM).stops(2, SIGTERM);
  CHECK(summary() == "stopping: rank 1 on node-a: exited with code 3");
  event::FailureFound found = failure(1, "ValueError: bad");
  found.kind = "python_exception";
  found.excerpt = {"Traceback (most recent call last):", "ValueError: bad"};
  found.stderr_log = "/runs/4f1c/attempt_0/1/stderr.log";
  exits(0, SIGTERM).exits(2, SIGTERM).say(found).ends(Outcome::kFailed, 3);
  const Json row = attempt_row(0);
  CHECK(row["state"] == "failed");
  const Json& cause = row["failure"];
  CHECK(cause["rank"] == 1);
  CHECK(cause["signal"].is_null());
  CHECK(cause["reason"] == "an exception that nobody caught ended it");
  CHECK(cause["hint"].get<std::string>().size() > 20);
  CHECK(cause["excerpt"].size() == 2);
  CHECK(cause["stderr_url"] == "/api/v1/logs/0/1/stderr");
  CHECK(cause["stdout_url"].is_null());
  CHECK(cause["ran_us"] == 1'000'000);
  CHECK(row["victims"] == Json::parse(R"([{"ranks": "0,2", "reason": "stopped by muster"}])"));
  CHECK(summary() == "rank 1 (local 1) on node-a failed after 1.0 s · ValueError: bad");
}

TEST_CASE_FIXTURE(Rows, "a failure has its line, its evidence and whom it blames") {
  start(2).start_attempt(2).exits(1, 3 << 8);
  event::FailureFound found = failure(1);
  found.line = "oom-kill: task=python";
  found.line_source = "kernel log";
  found.evidence = {"cgroup /job: limit 16 GiB"};
  found.victim = true;
  found.blames = "0";
  say(found);
  const Json cause = attempt_row(0)["failure"];
  CHECK(cause["line"] == "oom-kill: task=python");
  CHECK(cause["line_source"] == "kernel log");
  CHECK(cause["evidence"] == Json({"cgroup /job: limit 16 GiB"}));
  CHECK(cause["victim"] == true);
  CHECK(cause["blames"] == "0");
}

TEST_CASE_FIXTURE(Rows, "a job stalls and goes on, and its attempt keeps both") {
  start(2).start_attempt(2).after_ms(1'000);
  const int64_t since_us = kStartUs + 200'000;
  say(event::StallFound{0, "stopped", "1", "0", since_us, "rank 1 is stopped"});
  CHECK(job()["phase"] == "stalled");
  CHECK(job()["stall"]["suspects"] == "1");
  CHECK(job()["stall"]["since_us"] == since_us);
  CHECK(job()["stall"]["over"] == false);
  CHECK(summary() == "stalled: rank 1 is stopped");
  CHECK(attempt_row(0)["stalls"].at(0)["over"] == false);
  say(event::EvidenceSaved{0, "node-a", "stalled", "/f", {"rank 1: read"}, ""});
  say(event::StallOver{0, 800'000, "rank 1 goes on"});
  CHECK(job()["phase"] == "running");
  CHECK(job()["stall"].is_null());
  const Json row = attempt_row(0);
  CHECK(row["state"] == "running");
  CHECK(row["stalls"].at(0)["over"] == true);
  CHECK(row["stalls"].at(0)["lasted_us"] == 800'000);
  CHECK(row["stalls"].at(0)["how"] == "rank 1 goes on");
  CHECK(row["saved"] == Json::parse(R"([{"host": "node-a", "why": "stalled", "folder": "/f",
                                         "groups": ["rank 1: read"], "trouble": ""}])"));
  say(event::StallFound{0, "all_idle", "", "0-1", since_us, "all ranks wait"});
  live = false;
  CHECK(job()["stall"].is_null());
  CHECK(attempt_row(0)["stalls"].at(1)["over"] == true);
  CHECK(attempt_row(0)["stalls"].at(1)["how"] == "its attempt ended");
  CHECK(attempt_row(0)["stalls"].at(1)["lasted_us"].is_null());
}

TEST_CASE_FIXTURE(Rows, "a restart that is put off says when it is due") {
  start(1, 2).start_attempt(1).after_ms(100).exits(0, 3 << 8).say(failure(0));
  say(event::RestartScheduled{1, 1, 2, true, 10'000});
  CHECK(job()["restart_due_us"] == kStartUs + 10'100'000);
  CHECK(summary().ends_with("exited with code 3, put off for 10.0 s"));
  after_ms(20'000).start_attempt(1);
  CHECK(job()["restart_due_us"].is_null());
  CHECK(summary().find("put off") == std::string::npos);
}

TEST_CASE_FIXTURE(Rows, "victims of a large job are folded by how they ended") {
  start(1000).start_attempt(1000).exits(500, 3 << 8);
  for (int rank = 0; rank < 1000; ++rank) {
    if (rank != 500) stops(rank, SIGTERM).exits(rank, rank == 7 ? 1 << 8 : SIGTERM);
  }
  say(failure(500));
  const Json victims = attempt_row(0)["victims"];
  REQUIRE(victims.size() == 2);
  CHECK(victims[0]["ranks"] == "0-6,8-499,501-999");
  CHECK(victims[1]["ranks"] == "7");
  CHECK(victims[1]["reason"] == "stopped by muster, exited with code 1");
}

TEST_CASE_FIXTURE(Rows, "an earlier attempt has failed, and the restart is told") {
  start(1, 2).start_attempt(1).after_ms(100).exits(0, 3 << 8).say(failure(0));
  say(event::RestartScheduled{1, 1, 2, true});
  CHECK(summary() ==
        "restarting (1 of 2 restarts used) after rank 0 on node-a: exited with code 3");
  CHECK(attempt_row(0)["state"] == "failed");
  start_attempt(1);
  CHECK(attempt_row(0)["ended_us"] == kStartUs + 100'000);
  CHECK(attempt_row(1)["state"] == "running");
  CHECK(attempt_row(1)["ended_us"].is_null());
  CHECK(summary() == "1 rank runs · attempt 1, 1 of 2 restarts used");
}

TEST_CASE_FIXTURE(Rows, "a stopped job says who stopped it") {
  start(1).start_attempt(1);
  say(event::SignalReceived{SIGTERM, 123, 1000, "alice, scancel", false, ""});
  stops(0, SIGTERM, StopReason::kSignal);
  CHECK(job()["stop"]["signal"] == "SIGTERM");
  CHECK(job()["stop"]["host"] == "node-a");
  CHECK(summary() == "stopping: SIGTERM from pid 123 (alice, scancel)");
  exits(0, SIGTERM).ends(Outcome::kStopped, 143);
  CHECK(attempt_row(0)["state"] == "stopped");
  CHECK(attempt_row(0)["failure"].is_null());
}

TEST_CASE_FIXTURE(Rows, "who is awaited is told in the words of the console") {
  start(8);
  say(event::NodesAwaited{1, 2, 4, {"node-a (8)"}, 29'500, "1 of 2 nodes: have node-a (8)"});
  const Json row = job();
  CHECK(row["phase"] == "waiting");
  CHECK(row["waiting"]["have"] == 1);
  CHECK(row["waiting"]["hosts"] == Json({"node-a (8)"}));
  CHECK(row["waiting"]["left_s"] == 29.5);
  CHECK(row["summary"] == "1 of 2 nodes: have node-a (8)");
}

TEST_CASE_FIXTURE(Rows, "a job of one node has that node") {
  start(4);
  REQUIRE(node_rows(view()).size() == 1);
  CHECK(node(0)["host"] == "node-a");
  CHECK(node(0)["workers"] == 4);
  CHECK(node(0)["first_rank"].is_null());
  start_attempt(4);
  REQUIRE(node_rows(view()).size() == 1);
  CHECK(node(0)["id"] == "node-a");
  CHECK(node(0)["node"] == 0);
  CHECK(node(0)["first_rank"] == 0);
  CHECK(node(0)["here"] == true);
  CHECK(node(0)["lost"].is_null());
}

TEST_CASE_FIXTURE(Rows, "a lost node's ranks are lost, and the node says why") {
  two_nodes(2);
  CHECK(summary() == "4 ranks run on 2 nodes");
  say(event::NodeLost{"id-1", "node-1", 1, "silent", "node-1 was not heard of for 10 s"});
  CHECK(rank_state(1) == "running");
  CHECK(rank_state(2) == "lost");
  CHECK(rank(2)["host"] == "node-1");
  CHECK(node(0)["first_rank"] == 0);
  CHECK(node(1)["first_rank"] == 2);
  CHECK(node(1)["here"] == false);
  CHECK(node(1)["lost"]["how"] == "silent");
}

TEST_CASE_FIXTURE(Rows, "two nodes of one host keep their own ranks") {
  two_nodes(1);
  say(event::NodeJoined{"id-2", "node-0", "10.0.0.9", 99, 1, true});
  CHECK(node(0)["node"] == 0);
  CHECK(node(2)["node"].is_null());
  CHECK(node(2)["spare"] == true);
}

TEST_CASE_FIXTURE(Rows, "troubles are told up to twenty") {
  start(1);
  for (int i = 0; i < 30; ++i)
    say(event::Trouble{"logs", std::to_string(i)});
  const Json troubles = job()["troubles"];
  REQUIRE(troubles.size() == 20);
  CHECK(troubles[0]["message"] == "10");
  CHECK(troubles[19]["message"] == "29");
}

TEST_CASE("what is not known of a sample is null") {
  RankSample sample;
  sample.rank = 3;
  sample.cpu = 0.5;
  sample.loss = -0.25;
  const Json row = Rows::written([&](JsonOut& out) { write_sample(out, sample); });
  CHECK(row["cpu"] == 0.5);
  CHECK(row["loss"] == -0.25);
  CHECK(row["rss_bytes"].is_null());
  CHECK(row["step"].is_null());
  CHECK(row["last_output_us"].is_null());
  CHECK(row["alive_us"].is_null());
  CHECK(row["spins"] == false);
  CHECK(row["process_state"].is_null());
  CHECK(row["wait_channel"].is_null());
  sample.alive_us = 5;
  sample.spins = true;
  sample.state = 'D';
  sample.wait_channel = "nfs_wait";
  const Json told = Rows::written([&](JsonOut& out) { write_sample(out, sample); });
  CHECK(told["alive_us"] == 5);
  CHECK(told["spins"] == true);
  CHECK(told["process_state"] == "D");
  CHECK(told["wait_channel"] == "nfs_wait");
}
