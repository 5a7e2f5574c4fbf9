// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/sample_keeper.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "job/job_story.h"
#include "logs/temp_dir.h"
#include "loop/loop_test.h"

using namespace muster;

namespace {

struct Keeping : LoopTest {
  TempDir dir;
  const std::string file = dir.path + "/samples.jsonl";
  JobStory story;
  std::vector<RankSample> samples;
  std::vector<std::string> troubles;

  SampleKeeper::Parts parts() {
    return {[this]() -> const JobState& { return story.state; }, [this] { return samples; },
            [this](const std::string& text) { troubles.push_back(text); }};
  }
  RankSample& sample(int rank) {
    samples.reserve(8);
    samples.emplace_back().rank = rank;
    return samples.back();
  }
  void append(const std::string& text) {
    std::ofstream(file, std::ios::binary | std::ios::app) << text;
  }
  bool settled() {
    return run_until([this] { return !loop.has_requests(); });
  }
};

bool any_rank(int) {
  return true;
}

}  // namespace

TEST_CASE_FIXTURE(Keeping, "what was measured comes back from a line") {
  RankSample& one = sample(3);
  one.cpu = 1.5;
  one.rss_bytes = 1'000'000'000'000;
  one.last_output_us = 5;
  one.gpu = 0.5;
  one.gpu_memory_bytes = 6;
  one.step = 7;
  one.steps = 8;
  one.steps_per_s = 0.125;
  one.loss = -1.25;
  sample(4);
  const std::string line = history_line(2, 1234, samples);
  CHECK(line ==
        "{\"time_us\":1234,\"attempt\":2,\"ranks\":[[3,1.5,1000000000000,5,0.5,6,7,8,0.125,-1.25],"
        "[4,null,null,null]]}\n");
  const auto record = parse_history_line(line);
  REQUIRE(record.has_value());
  CHECK(record->attempt == 2);
  REQUIRE(record->samples.size() == 2);
  const RankSample& back = record->samples[0];
  CHECK(back.time_us == 1234);
  CHECK(back.rss_bytes == one.rss_bytes);
  CHECK(back.loss == -1.25);
  CHECK(back.steps_per_s == 0.125);
  CHECK(record->samples[1].cpu < 0);
  CHECK_FALSE(record->samples[1].loss.has_value());
}

TEST_CASE("what is no record is told apart") {
  for (const char* bad : {"", "{", "[]", "{\"time_us\": 1}", "{\"time_us\": \"x\", \"ranks\": []}",
                          "{\"time_us\": 1, \"ranks\": [1]}"})
    CHECK_FALSE(parse_history_line(bad).has_value());
}

TEST_CASE("the older and the larger a job, the fewer its samples") {
  CHECK(history_interval_us(0, 8) == 10'000'000);
  CHECK(history_interval_us(3'600'000'000, 8) == 10'000'000);
  CHECK(history_interval_us(86'400'000'000, 8) == 86'400'000);
  CHECK(history_interval_us(0, 4'096) == 160'000'000);
}

TEST_CASE_FIXTURE(Keeping, "samples that come too soon are not kept, those of a new attempt are") {
  story.start(1, 1).start_attempt(1);
  story.state.started = std::chrono::system_clock::now();
  SampleKeeper keeper(loop, dir.path, parts());
  keeper.on_look();
  CHECK_FALSE(loop.has_requests());
  sample(0).cpu = 1;
  keeper.on_look();
  REQUIRE(settled());
  keeper.on_look();
  REQUIRE(settled());
  CHECK(read_history(file, 100, any_rank).size() == 1);
  story.start_attempt(1);
  keeper.on_look();
  REQUIRE(settled());
  CHECK(read_history(file, 100, any_rank).size() == 2);
  CHECK(read_last_samples(file).attempt == 1);
  CHECK(troubles.empty());
}

TEST_CASE_FIXTURE(Keeping, "a folder that cannot be written is said once") {
  HistoryWriter writer(loop, "/nowhere/samples.jsonl",
                       [this](const std::string& text) { troubles.push_back(text); });
  for (int i = 0; i < 3; ++i) {
    writer.append("line\n");
    REQUIRE(settled());
  }
  REQUIRE(troubles.size() == 1);
  CHECK(troubles[0] ==
        "write /nowhere/samples.jsonl: No such file or directory; measurements are not kept");
}

TEST_CASE_FIXTURE(Keeping, "a history that has reached its limit is left as it is") {
  write_file(file, "");
  std::filesystem::resize_file(file, kMaxHistoryBytes);
  HistoryWriter writer(loop, file, [](const std::string&) {});
  for (int i = 0; i < 3; ++i) {
    writer.append("line\n");
    REQUIRE(settled());
  }
  CHECK(std::filesystem::file_size(file) == kMaxHistoryBytes + 5);
}

TEST_CASE_FIXTURE(Keeping, "the writer may go while a line is on its way") {
  {
    HistoryWriter writer(loop, file, [](const std::string&) {});
    writer.append("line\n");
  }
  REQUIRE(settled());
  CHECK(read_file(file) == "line\n");
}

TEST_CASE_FIXTURE(Keeping, "a long history is thinned when it is read, its end kept") {
  for (int rank = 0; rank < 4; ++rank)
    sample(rank);
  for (int i = 0; i < 1'000; ++i)
    append(history_line(0, i, samples));
  CHECK(read_history(file, 100'000, any_rank).size() == 4'000);
  const auto some = read_history(file, 400, any_rank);
  CHECK(some.size() <= 404);
  CHECK(some.size() > 200);
  CHECK(some.front().time_us == 0);
  CHECK(some.back().time_us == 999);
  const auto one = read_history(file, 400, [](int rank) { return rank == 2; });
  CHECK(one.size() > 200);
  CHECK(std::all_of(one.begin(), one.end(), [](const RankSample& s) { return s.rank == 2; }));
}

TEST_CASE_FIXTURE(Keeping, "a run that was killed while it wrote has its samples before") {
  sample(0).step = 5;
  append(history_line(0, 1, samples));
  append("{\"time_us\":2,\"attempt\":0,\"ra");
  CHECK(read_last_samples(file).samples.at(0).step == 5);
  CHECK(read_history(file, 100, any_rank).size() == 1);
  CHECK(read_last_samples(dir.path + "/none").samples.empty());
}
