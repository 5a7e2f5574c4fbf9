// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/metrics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "job/job_story.h"
#include "logs/temp_dir.h"
#include "skip.h"

using namespace muster;

namespace {

struct Measured : JobStory {
  std::vector<RankSample> samples;
  std::optional<StoreCounters> store;
  std::vector<StoreWaiter> waiters;

  std::string text() const {
    const JobView view{state, true, true, kStartSeconds * 1'000'000 + now_us};
    std::string to;
    write_metrics(to, {view, samples, waiters, store, Clock::now()});
    return to;
  }
  bool has(const std::string& line) const {
    return ("\n" + text()).find("\n" + line + "\n") != std::string::npos;
  }
  void sample_ranks(int count) {
    for (int rank = 0; rank < count; ++rank) {
      RankSample& one = samples.emplace_back();
      one.rank = rank;
      one.cpu = rank;
      one.rss_bytes = 1000;
      one.last_output_us = 1'500'000;
      one.gpu = 0.5;
      one.gpu_memory_bytes = 5;
      one.step = rank;
    }
  }
};

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE_FIXTURE(Measured, "the job's phase is one of all phases") {
  start(2, 3).start_attempt(2);
  CHECK(has("muster_job_phase{phase=\"running\"} 1"));
  CHECK(has("muster_job_phase{phase=\"waiting\"} 0"));
  CHECK(has("muster_ranks{state=\"running\"} 2"));
  CHECK(has("muster_job_restarts_max 3"));
  exits(0, 0).exits(1, 0).ends(Outcome::kSucceeded, 0);
  CHECK(has("muster_job_outcome{outcome=\"succeeded\"} 1"));
  CHECK(has("muster_job_phase{phase=\"ended\"} 1"));
}

TEST_CASE_FIXTURE(Measured, "labels are escaped") {
  start(1);
  state.job.program = "a\"b\\c\nd";
  CHECK(text().find("program=\"a\\\"b\\\\cd\"") != std::string::npos);
}

TEST_CASE_FIXTURE(Measured, "what is not measured makes no series") {
  start(1).start_attempt(1);
  samples.emplace_back().rank = 0;
  CHECK(text().find("muster_rank_") == std::string::npos);
  CHECK(text().find("muster_store_") == std::string::npos);
  samples[0].step = 0;
  CHECK(has("muster_rank_step{rank=\"0\"} 0"));
}

TEST_CASE_FIXTURE(Measured, "a large job has no series for each rank") {
  start(600).start_attempt(600);
  sample_ranks(static_cast<int>(kMaxMetricRanks));
  CHECK(has("muster_rank_step{rank=\"511\"} 511"));
  CHECK(lines_of(text()) > 3'000);
  samples.clear();
  sample_ranks(600);
  CHECK(has("muster_ranks_step{of=\"most\"} 599"));
  CHECK(has("muster_ranks_cpu_cores{of=\"mean\"} 299.5"));
  CHECK(lines_of(text()) < 120);
}

TEST_CASE_FIXTURE(Measured, "nobody is kept waiting between two attempts") {
  start(2, 1).start_attempt(2);
  for (int rank = 0; rank < 2; ++rank) {
    RankCommunicator world;
    world.rank = rank;
    world.size = 2;
    world.members = {{0, 1, 2}};
    if (rank == 0) {
      RankCall& call = world.calls.emplace_back();
      call.sequence = world.collectives = 1;
      call.age_us = 60'000'000;
    }
    RankSample& one = samples.emplace_back();
    one.rank = rank;
    one.time_us = kStartSeconds * 1'000'000;
    one.operations = std::make_shared<const RankOperations>(RankOperations{{world}});
  }
  CHECK(has("muster_collective_findings 1"));
  CHECK(has("muster_collective_longest_wait_seconds 60"));
  exits(1, 3 << 8).say(failure(1));
  event::CollectivesFound kept{attempt, {}, 2};
  kept.found.emplace_back().waited_us = 60'000'000;
  say(kept).say(event::RestartScheduled{1, 1, 1, true});
  CHECK(has("muster_collective_findings 0"));
  CHECK(has("muster_collective_longest_wait_seconds 0"));
}

TEST_CASE_FIXTURE(Measured, "an alarm can ask for how long nothing moves") {
  start(2, 1).start_attempt(2).after_ms(90'000);
  CHECK(has("muster_job_stalled_seconds 0"));
  say(event::StallFound{0, "all_idle", "", "0-1", kStartSeconds * 1'000'000 + 30'000'000, "idle"});
  samples.emplace_back().alive_us = 1'500'000;
  CHECK(has("muster_job_stalled_seconds 60"));
  CHECK(has("muster_job_phase{phase=\"stalled\"} 1"));
  CHECK(has("muster_job_phase{phase=\"running\"} 0"));
  CHECK(has("muster_rank_alive_timestamp_seconds{rank=\"0\"} 1.5"));
  say(event::StallOver{0, 60'000'000, "rank 0 wrote"});
  CHECK(has("muster_job_stalled_seconds 0"));
  CHECK(has("muster_job_phase{phase=\"running\"} 1"));
}

TEST_CASE_FIXTURE(Measured,
                  "failed attempts are counted by what they failed of, up to a hundred kinds") {
  start(1, 500);
  CHECK(text().find("root_causes") == std::string::npos);
  for (int i = 0; i < 3; ++i) {
    start_attempt(1).exits(0, 3 << 8);
    event::FailureFound found = failure(0);
    found.kind = i == 1 ? "oom_kill" : "exit_code";
    say(found).say(event::RestartScheduled{i + 1, i + 1, 500, true, 5'000});
  }
  CHECK(has("muster_job_root_causes_total{kind=\"exit_code\"} 2"));
  CHECK(has("muster_job_root_causes_total{kind=\"oom_kill\"} 1"));
  CHECK(has("muster_job_restart_delay_seconds 5"));
  for (int i = 0; i < 200; ++i) {
    start_attempt(1);
    event::FailureFound found = failure(0);
    found.kind = "own_" + std::to_string(i);
    say(found);
  }
  const std::string all = text();
  size_t kinds = 0;
  for (size_t at = 0; (at = all.find("{kind=", at)) != std::string::npos; ++at)
    ++kinds;
  CHECK(kinds == 100);
}

TEST_CASE_FIXTURE(Measured, "Prometheus' own tool has nothing to find fault with") {
  if (std::system("promtool --version > /dev/null 2>&1") != 0) return say_skipped("no promtool");
  start(4, 1).start_attempt(4).after_ms(1000);
  state.job.program = "we\"ird\\ \xC3\xA4 name";
  say(failure(1)).say(event::StallFound{0, "all_idle", "", "0-3", 1, "idle"});
  store.emplace();
  int ranks = 4;
  SUBCASE("rank by rank") {}
  SUBCASE("summed") {
    ranks = 600;
  }
  sample_ranks(ranks);
  TempDir dir;
  const std::string path = dir.path + "/metrics.txt";
  write_file(path, text());
  const std::string command = "promtool check metrics < " + path + " > " + path + ".out 2>&1";
  const int status = std::system(command.c_str());
  CHECK(read_file(path + ".out") == "");
  CHECK(status == 0);
}
