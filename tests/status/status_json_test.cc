// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/status_json.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "job/job_story.h"

using namespace muster;
using Json = nlohmann::json;

namespace {

constexpr int64_t kStartUs = JobStory::kStartSeconds * 1'000'000;

struct Status : JobStory {
  std::vector<RankSample> samples;
  std::vector<StoreWaiter> waiters;
  std::optional<StoreCounters> store;
  Clock::time_point now{std::chrono::hours(24)};
  bool live = true;

  std::string text(const std::optional<RankList>& asked = std::nullopt) const {
    const JobView view{state, live, true, kStartUs + now_us};
    std::string to;
    write_status(to, {view, samples, waiters, store, now}, asked);
    return to;
  }
  Json json(const std::optional<RankList>& asked = std::nullopt) const {
    return Json::parse(text(asked));
  }
  RankSample& sample(int rank) {
    samples.emplace_back().rank = rank;
    return samples.back();
  }
  void wait(uint32_t pid, std::string key, int seconds) {
    if (!store) store.emplace();
    waiters.push_back({"127.0.0.1:4000", pid, now - std::chrono::seconds(seconds), false, {key}});
  }

  // `nodes` with eight workers each, which all run.
  Status& large(int nodes) {
    start(8);
    event::AttemptStarted started;
    started.attempt = ++attempt;
    started.node_count = nodes;
    started.world_size = 8 * nodes;
    for (int node = 0; node < nodes; ++node) {
      const std::string id = "id-" + std::to_string(node);
      const std::string host = "node-" + std::to_string(node) + ".cluster.example";
      say(event::NodeJoined{id, host, "10.0.0.1", 70, 8, false});
      started.nodes.push_back({node, host, 8 * node, 8, id});
    }
    say(started);
    for (int rank = 0; rank < 8 * nodes; ++rank)
      say(event::WorkerSpawned{attempt, rank, rank % 8, pid(rank)});
    return *this;
  }
  void stalls(const std::string& suspects, const std::string& waiting, int64_t ago_ms) {
    say(event::StallFound{attempt, "spinning", suspects, waiting,
                          kStartUs + now_us - 1'000 * ago_ms,
                          "rank " + suspects + " spins since 00:05:00"});
  }
  void sample_all(int count) {
    for (int rank = 0; rank < count; ++rank) {
      RankSample& one = sample(rank);
      one.cpu = 1.23;
      one.rss_bytes = 12'345'678'901;
      one.last_output_us = kStartUs + now_us - rank;
      one.gpu = 0.98;
      one.gpu_memory_bytes = 70'000'000'000;
      one.step = 123'456 + rank % 3;
      one.steps = 1'000'000;
      one.steps_per_s = 12.25;
      one.loss = 0.123456789;
    }
  }
};

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += text;
  return all;
}

}  // namespace

TEST_CASE_FIXTURE(Status, "before anything has started there is an answer") {
  start(2);
  const Json status = json();
  CHECK(status["phase"] == "starting");
  CHECK(status["failure"].is_null());
  CHECK(status["ranks"].empty());
  CHECK(status["attention"].empty());
  CHECK(status["store"].is_null());
}

TEST_CASE_FIXTURE(Status, "each rank of a small job stands on a line with what is measured") {
  start(64).start_attempt(64).after_ms(10'000);
  RankSample& one = sample(3);
  one.cpu = 0.987;
  one.rss_bytes = 1 << 20;
  one.last_output_us = kStartUs + now_us - 2'000'000;
  one.step = 5;
  const std::string whole = text();
  const Json status = json();
  REQUIRE(status["ranks"].size() == 64);
  const Json& rank = status["ranks"][3];
  CHECK(rank["pid"] == 1003);
  CHECK(rank["since_s"] == 10.0);
  CHECK(rank["last_output_s"] == 2.0);
  CHECK(rank["cpu"] == 0.99);
  CHECK(rank["step"] == 5);
  CHECK_FALSE(rank.contains("gpu"));
  CHECK(status["groups"].empty());
  CHECK(status["counts"] == Json({{"running", 64}}));
  CHECK(whole.find("\n    {\"rank\": 3, ") != std::string::npos);
  CHECK(whole.ends_with("}\n"));
}

TEST_CASE_FIXTURE(Status, "a failure is told with its evidence, its victims and what to do") {
  start(3).start_attempt(3).after_ms(1000).exits(1, SIGKILL);
  stops(0, SIGTERM).stops(2, SIGTERM).exits(0, SIGTERM).exits(2, SIGTERM);
  event::FailureFound found = failure(1, "killed by SIGKILL (signal 9)");
  found.kind = "killed";
  found.signal = SIGKILL;
  found.exit_code = 137;
  found.excerpt = {"step 1", "step 2"};
  found.excerpt_source = "stdout";
  say(found).ends(Outcome::kFailed, 137);
  const Json cause = json()["failure"];
  CHECK(cause["message"] == "killed by SIGKILL (signal 9)");
  CHECK(cause["signal"] == "SIGKILL");
  CHECK(cause["rank"] == 1);
  CHECK(cause["hint"].get<std::string>().find("out of memory") != std::string::npos);
  CHECK(cause["excerpt"] == Json({"step 1", "step 2"}));
  CHECK(cause["victims"][0]["ranks"] == "0,2");
  CHECK(json()["outcome"] == "failed");
}

TEST_CASE_FIXTURE(
    Status, "a failure shows the line that proves it, what else was found and whom it blames") {
  start(2).start_attempt(2).after_ms(1000).exits(1, 1 << 8).exits(0, 1 << 8);
  event::FailureFound found = failure(1, "connection lost");
  found.line = "RuntimeError: Connection closed by peer [10.0.0.1]:41";
  found.line_source = "stderr";
  found.evidence = {"peak memory 3.1 GiB", std::string("\x1b[2Jred ") + repeated("x", 1'000)};
  found.victim = true;
  found.blames = "0";
  say(found);
  event::FailureFound other = failure(0, "exited with code 1");
  other.victim = true;
  other.blames = "1";
  say(other);
  const Json cause = json()["failure"];
  CHECK(cause["line"] == found.line);
  CHECK(cause["line_source"] == "stderr");
  REQUIRE(cause["evidence"].size() == 2);
  CHECK(cause["evidence"][0] == "peak memory 3.1 GiB");
  CHECK(cause["evidence"][1].get<std::string>().starts_with("red xxx"));
  CHECK(cause["evidence"][1].get<std::string>().size() < 450);
  CHECK(cause["victim"] == true);
  CHECK(cause["blames"] == "0");
  CHECK(cause["other_failures"][0]["victim"] == true);
  CHECK(cause["other_failures"][0]["blames"] == "1");
}

TEST_CASE_FIXTURE(Status,
                  "a stalled job says since when, who differs, and where the evidence lies") {
  start(3).start_attempt(3).after_ms(400'000);
  CHECK(json()["stall"].is_null());
  CHECK(json()["phase"] == "running");
  stalls("1", "0,2", 300'000);
  say(event::EvidenceSaved{0,
                           "node-a",
                           "stalled",
                           "/runs/4f1c/attempt_0/stacks_0",
                           {"ranks 0,2: pthread_cond_wait", "rank 1: spin()"},
                           "no py-spy"});
  RankSample& one = sample(1);
  one.alive_us = kStartUs + now_us - 300'000'000;
  one.spins = true;
  one.state = 'R';
  one.wait_channel = "futex_wait_queue";
  const Json status = json();
  CHECK(status["phase"] == "stalled");
  CHECK(status["summary"] == "stalled: rank 1 spins since 00:05:00");
  CHECK(status["attention"].at(0) == "rank 1 spins since 00:05:00");
  const Json& stall = status["stall"];
  CHECK(stall["kind"] == "spinning");
  CHECK(stall["hint"].get<std::string>().find("endless loop") != std::string::npos);
  CHECK(stall["suspects"] == "1");
  CHECK(stall["waiting"] == "0,2");
  CHECK(stall["since_us"] == kStartUs + now_us - 300'000'000);
  CHECK(stall["lasted_s"] == 300.0);
  REQUIRE(status["saved"].size() == 1);
  CHECK(status["saved"][0]["folder"] == "/runs/4f1c/attempt_0/stacks_0");
  CHECK(status["saved"][0]["groups"].size() == 2);
  CHECK(status["saved"][0]["trouble"] == "no py-spy");
  const Json& rank = status["ranks"].at(1);
  CHECK(rank["suspect"] == true);
  CHECK_FALSE(status["ranks"].at(0).contains("suspect"));
  CHECK(rank["alive_s"] == 300.0);
  CHECK(rank["spins"] == true);
  CHECK(rank["process_state"] == "R");
  CHECK(rank["wait_channel"] == "futex_wait_queue");
  CHECK_FALSE(status["ranks"].at(0).contains("alive_s"));
}

TEST_CASE_FIXTURE(Status, "a stall that is over is history, with how it ended") {
  start(3).start_attempt(3).after_ms(400'000);
  for (int i = 0; i < 6; ++i) {
    stalls("1", "0,2", 300'000);
    say(event::StallOver{0, 300'000'000 + i, "rank 1 wrote again"});
  }
  const Json status = json();
  CHECK(status["phase"] == "running");
  CHECK(status["stall"].is_null());
  CHECK(status["attention"].empty());
  REQUIRE(status["past_stalls"].size() == 4);
  CHECK(status["past_stalls"][0]["lasted_s"] == 300.0);
  CHECK(status["past_stalls"][0]["how"] == "rank 1 wrote again");
}

TEST_CASE_FIXTURE(Status, "nobody stalls in a job that is stopped, or was killed") {
  start(3).start_attempt(3).after_ms(400'000);
  stalls("1", "0,2", 300'000);
  live = false;
  CHECK(json()["stall"].is_null());
  CHECK(json()["phase"] == "ended");
  live = true;
  stops(0, SIGTERM, StopReason::kSignal);
  CHECK(json()["stall"].is_null());
  CHECK(json()["phase"] == "stopping");
}

TEST_CASE_FIXTURE(Status, "what was saved of a hung attempt stays with its failure") {
  start(1, 1).start_attempt(1).after_ms(400'000);
  for (int i = 0; i < 70; ++i)
    say(event::EvidenceSaved{0, "node-a", "stalled", "/stacks_" + std::to_string(i), {}, ""});
  exits(0, SIGABRT).say(failure(0, "hung"));
  say(event::RestartScheduled{1, 1, 1, true, 30'000});
  CHECK(json()["restarts"] == Json({{"used", 1}, {"max", 1}, {"due_s", 30.0}}));
  after_ms(10'000);
  CHECK(json()["restarts"]["due_s"] == 20.0);
  CHECK(json()["summary"] ==
        "restarting (1 of 1 restart used) after rank 0 on node-a: hung, put off for 30.0 s");
  start_attempt(1);
  const Json status = json();
  CHECK(status["restarts"]["due_s"].is_null());
  CHECK(status["saved"].empty());
  CHECK(status["failure"]["saved"][0]["folder"] == "/stacks_69");
  CHECK(status["failure"]["saved"].size() == 4);
  CHECK(status["failure"]["saved_left_out"] == kMaxEvidenceSaved - 4);
}

TEST_CASE_FIXTURE(Status, "while another attempt runs the last failure is still told") {
  start(1, 3).start_attempt(1).exits(0, 3 << 8).say(failure(0, "first"));
  say(event::RestartScheduled{1, 1, 3, true}).start_attempt(1).exits(0, 3 << 8);
  say(failure(0, "second")).say(event::RestartScheduled{2, 2, 3, true}).start_attempt(1);
  Json status = json();
  CHECK(status["phase"] == "running");
  CHECK(status["failure"]["message"] == "second");
  CHECK(status["failure"]["earlier_failures"][0]["message"] == "first");
  CHECK(status["restarts"] == Json({{"used", 2}, {"max", 3}, {"due_s", nullptr}}));
  exits(0, 0).ends(Outcome::kSucceeded, 0);
  CHECK(json()["failure"].is_null());
}

TEST_CASE_FIXTURE(Status, "a long excerpt keeps its end") {
  start(1).start_attempt(1).exits(0, 3 << 8);
  event::FailureFound found = failure(0);
  for (int i = 0; i < 60; ++i)
    found.excerpt.push_back("line " + std::to_string(i) + repeated("x", 300));
  say(found);
  const Json cause = json()["failure"];
  const Json& excerpt = cause["excerpt"];
  CHECK(excerpt.size() > 10);
  CHECK(excerpt.size() + cause["excerpt_left_out"].get<size_t>() == 60);
  CHECK(excerpt.back().get<std::string>().starts_with("line 59x"));
}

TEST_CASE_FIXTURE(Status, "a hang in the store names who waits and who does not") {
  start(4).start_attempt(4).after_ms(60'000);
  for (int rank = 0; rank < 3; ++rank)
    wait(static_cast<uint32_t>(pid(rank)), "/default_pg/0/3", 45);
  const Json status = json();
  CHECK(status["store"]["waiting_ranks"] == "0-2");
  CHECK(status["store"]["other_ranks"] == "3");
  CHECK(status["store"]["waits"][0]["ranks"] == "0-2");
  CHECK(status["store"]["waits"][0]["longest_s"] == 45.0);
  REQUIRE(status["attention"].size() == 1);
  CHECK(status["attention"][0] ==
        "ranks 0-2 wait in the store, for up to 45.0 s, for \"/default_pg/0/3\"; rank 3 does not "
        "wait");
}

TEST_CASE_FIXTURE(Status, "a short wait in the store needs nobody's attention") {
  start(2).start_attempt(2);
  wait(static_cast<uint32_t>(pid(0)), "/a", 2);
  CHECK(json()["attention"].empty());
  CHECK(json()["store"]["waiters"] == 1);
}

TEST_CASE_FIXTURE(Status, "a rank that fell silent while others write is pointed out") {
  start(3).start_attempt(3).after_ms(600'000);
  for (int rank = 0; rank < 3; ++rank)
    sample(rank).last_output_us = kStartUs + now_us - (rank == 1 ? 300'000'000 : 1'000'000);
  CHECK(json()["attention"] ==
        Json({"rank 1 has written nothing for 00:05:00 while others write"}));
  samples[0].last_output_us = samples[2].last_output_us = kStartUs + now_us - 290'000'000;
  CHECK(json()["attention"].empty());
}

TEST_CASE_FIXTURE(Status, "progress is that of the slowest rank") {
  start(3).start_attempt(3);
  for (int rank = 0; rank < 3; ++rank) {
    sample(rank).step = rank == 1 ? 90 : 100;
    samples.back().steps = 200;
    samples.back().steps_per_s = 2;
  }
  const Json progress = json()["progress"];
  CHECK(progress["step"] == 90);
  CHECK(progress["steps"] == 200);
  CHECK(progress["last_rank"] == 1);
  CHECK(progress["first_step"] == 100);
  CHECK(progress["left_s"] == 55.0);
}

TEST_CASE_FIXTURE(Status, "a larger job is folded, and who stands out is listed") {
  large(10).after_ms(500'000);
  sample_all(80);
  samples[33].last_output_us = kStartUs + 1'000;
  samples[44].step = 7;
  say(event::WorkerExited{0, 17, 1, pid(17), 3 << 8, 0});
  const Json status = json();
  CHECK(status["counts"] == Json({{"running", 79}, {"failed", 1}}));
  REQUIRE(status["groups"].size() == 11);
  CHECK(status["groups"][2]["ranks"] == "16,18-23");
  CHECK(status["groups"][3] == Json({{"ranks", "17"},
                                     {"count", 1},
                                     {"node", 2},
                                     {"host", "node-2.cluster.example"},
                                     {"state", "failed"}}));
  CHECK(status["groups"][6]["step_min"] == 7);
  const Json& ranks = status["ranks"];
  REQUIRE(ranks.size() > 2);
  CHECK(ranks[0]["rank"] == 17);
  CHECK(ranks[0]["notable"] == "failed");
  CHECK(ranks[1]["rank"] == 33);
  CHECK(ranks[1]["notable"] == "silent longest");
  const bool behind = std::any_of(ranks.begin(), ranks.end(), [](const Json& rank) {
    return rank["rank"] == 44 && rank["notable"] == "furthest behind";
  });
  CHECK(behind);
}

TEST_CASE_FIXTURE(Status, "of a list of suspects that was cut those that are left are marked") {
  start(4).start_attempt(4).after_ms(400'000);
  stalls("1,...", "0", 300'000);
  const Json ranks = json()["ranks"];
  CHECK(ranks.at(1)["suspect"] == true);
  CHECK_FALSE(ranks.at(2).contains("suspect"));
}

TEST_CASE_FIXTURE(Status, "the suspects of a large job's stall are among the notable ranks") {
  large(10).after_ms(500'000);
  sample_all(80);
  stalls("41,70-79", "0-40,42-69", 300'000);
  const Json ranks = json()["ranks"];
  REQUIRE(ranks.size() > 11);
  CHECK(ranks[0]["rank"] == 41);
  CHECK(ranks[0]["notable"] == "differs in the stall");
  CHECK(ranks[10]["rank"] == 79);
  CHECK_FALSE(ranks[11].contains("suspect"));
}

TEST_CASE_FIXTURE(Status, "of more nodes than can be told apart the ranks are folded by state") {
  large(100);
  const Json status = json();
  REQUIRE(status["groups"].size() == 1);
  CHECK(status["groups"][0]["ranks"] == "0-799");
  CHECK_FALSE(status["groups"][0].contains("node"));
  CHECK(status["node_count"] == 100);
  CHECK(status["nodes"].size() == 16);
}

TEST_CASE_FIXTURE(Status, "ranks that are asked for are told one by one") {
  large(100);
  const Json status = json(RankList{{0, 7}, {12, 12}});
  REQUIRE(status["ranks"].size() == 9);
  CHECK(status["ranks"][8]["rank"] == 12);
  CHECK(status["groups"].empty());
}

TEST_CASE_FIXTURE(Status, "ranks that are not there cannot be asked for") {
  CHECK(check_asked_ranks(state, {{0, 0}}) == "no rank has been started yet");
  large(300);
  CHECK(check_asked_ranks(state, {{0, 7}, {2399, 2399}}).empty());
  CHECK(check_asked_ranks(state, {{0, 2400}}) == "ranks here are 0-2399");
  CHECK(check_asked_ranks(state, {{0, 1'024}}) == "at most 1024 ranks are told at once");
  CHECK(check_asked_ranks(state, {{0, 1'022}, {5, 5}}).empty());
}

TEST_CASE_FIXTURE(Status, "it stays small for a thousand ranks and for four thousand") {
  int nodes = 0;
  SUBCASE("64 in full") {
    nodes = 8;
  }
  SUBCASE("1,000") {
    nodes = 125;
  }
  SUBCASE("4,096") {
    nodes = 512;
  }
  large(nodes).after_ms(500'000);
  sample_all(8 * nodes);
  CHECK(text().size() < kMaxStatusBytes);
}

TEST_CASE_FIXTURE(Status, "who keeps whom waiting is said while the job runs") {
  start(4);
  start_attempt(4);
  after_ms(100'000);
  for (int rank = 0; rank < 4; ++rank) {
    RankSample& one = sample(rank);
    one.time_us = kStartUs + now_us - 1'000'000;
    one.heartbeat_us = one.time_us - 2'000'000;
    one.values = {{"accuracy", 0.5}};
    auto operations = std::make_shared<RankOperations>();
    RankCommunicator& world = operations->communicators.emplace_back();
    world.name = "world";
    world.rank = rank;
    world.size = 4;
    world.members = {{0, 1, 4}};
    if (rank != 3) {
      RankCall& call = world.calls.emplace_back();
      call.kind = comm::detail::OpKind::kBarrier;
      call.sequence = world.collectives = 1;
      call.age_us = 60'000'000;
    }
    one.operations = operations;
  }
  const Json status = json();
  const Json& found = status["collectives"].at(0);
  CHECK(found["text"] ==
        "rank 3 never entered barrier #1 and has entered no operation yet; ranks 0-2 wait since "
        "61 s");
  CHECK(found["suspects"] == "3");
  CHECK(found["waiting"] == "0-2");
  CHECK(found["waited_s"] == 61.0);
  CHECK(found["bytes"].is_null());
  CHECK(status["attention"].at(0) == found["text"]);
  CHECK(status["collectives_left_out"] == 0);
  const Json& rank = status["ranks"].at(0);
  CHECK(rank["heartbeat_s"] == 3.0);
  CHECK(rank["values"] == Json::parse(R"([["accuracy", 0.5]])"));
  CHECK(rank["operation"]["call"] == "barrier #1");
  CHECK(rank["operation"]["state"] == "running");
  // When it ended it is as it was told then.
  say(failure(3, "exited with code 1"));
  event::CollectivesFound kept;
  kept.found.emplace_back().text = "as it was";
  say(kept);
  CHECK(json()["collectives"].at(0)["text"] == "as it was");
  CHECK(json()["failure"]["collectives"].at(0)["text"] == "as it was");
  // But it is not so any more.
  say(event::RestartScheduled{1, 1, 1, true});
  CHECK(json()["attention"].empty());
  CHECK(json()["failure"]["collectives"].at(0)["text"] == "as it was");
}

// Everything at once, with texts that double when they are quoted.
TEST_CASE_FIXTURE(Status, "it stays small whatever the job holds") {
  const std::string quotes = repeated("\"\\", 3'000);
  large(512).after_ms(500'000);
  sample_all(4'096);
  state.job.program = state.job.log_dir = state.job.run_id = quotes;
  for (event::NodeSpan& span : state.attempts[0].nodes)
    span.host = quotes;
  for (int i = 0; i < 512; ++i) {
    state.nodes[static_cast<size_t>(i)].joined.host = quotes;
    say(event::NodeLost{"id-" + std::to_string(i), quotes, i, "silent", quotes});
  }
  for (int rank = 0; rank < 4'096; rank += 2)
    say(event::WorkerExited{0, rank, rank % 8, pid(rank), 1 << 8, 0});
  for (int i = 0; i < 200; ++i) {
    event::FailureFound found = failure(2 * i, quotes);
    found.note = found.stderr_log = found.stdout_log = found.host = found.excerpt_source = quotes;
    found.excerpt.assign(60, quotes);
    found.line = found.line_source = quotes;
    found.blames = repeated("1,3,", 2'000);
    found.evidence.assign(event::kMaxEvidenceLines, quotes);
    say(found);
  }
  std::vector<event::VictimGroup> groups(500, {repeated("1,3,", 2'000), quotes});
  say(event::VictimsFound{0, groups});
  event::CollectivesFound collectives;
  collectives.found.assign(40, {quotes, quotes, quotes, 1, 1, quotes, repeated("1,3,", 2'000),
                                repeated("1,3,", 2'000), 1, quotes});
  say(collectives);
  for (size_t i = 0; i < kMaxPastStalls + 1; ++i) {
    say(event::StallFound{0, quotes, repeated("1,3,", 2'000), repeated("1,3,", 2'000), 1, quotes});
    say(event::StallOver{0, 1, quotes});
  }
  for (size_t i = 0; i < kMaxEvidenceSaved; ++i)
    say(event::EvidenceSaved{0, quotes, quotes, quotes, std::vector(200, quotes), quotes});
  for (int i = 0; i < 5'000; ++i)
    wait(static_cast<uint32_t>(i),
         quotes + static_cast<char>('a' + i % 26) + static_cast<char>('a' + i / 26 % 26), i);
  for (int i = 0; i < 50; ++i)
    say(event::Trouble{"logs", quotes});
  say(event::NodesAwaited{1, 2, 4, std::vector<std::string>(500, quotes), 1, quotes});
  say(event::SignalReceived{15, 5, 5, quotes, false, quotes});
  const std::string whole = text();
  CHECK(whole.size() < kMaxStatusBytes);
  CHECK(Json::parse(whole)["failure"]["other_failures_count"] == 199);
}
