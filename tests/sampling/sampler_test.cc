// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/sampler.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "job/job_story.h"
#include "logs/job_logs_fixture.h"
#include "nccl/page/written_page.h"
#include "store/server_fixture.h"
#include "supervisor/sampling/reported_progress.h"

using namespace muster;

namespace {

// Workers that are shell scripts, measured.
struct SamplerTest : JobLogsTest {
  JobStory story;
  std::unique_ptr<Sampler> sampler;
  int looks = 0;
  std::shared_ptr<const UniqueFd> page;  // of all workers
  Milliseconds every{10'000};
  std::shared_ptr<const UniqueFd> progress;  // likewise
  bool gpus = true;                          // the stand-in's, which are always in use

  void run(const std::vector<std::string>& scripts) {
    const int workers = static_cast<int>(scripts.size());
    begin(workers);
    if (!gpus) plan.inherited = {"CUDA_VISIBLE_DEVICES="};
    sampler = std::make_unique<Sampler>(
        loop,
        Sampler::Parts{[this]() -> const JobState& { return story.state; }, *logs, plan, kProc,
                       [this](int) { return page; }, every, [this](int) { return progress; }});
    sampler->set_on_look([this] { ++looks; });
    story.start(workers);
    event::AttemptStarted started;
    started.attempt = ++story.attempt;
    started.world_size = workers;
    started.nodes = {{0, "node-a", 0, workers}};
    tell(started);
    // The story's clock is not this machine's.
    story.state.started = std::chrono::system_clock::now();
    for (int rank = 0; rank < workers; ++rank) {
      start(rank, scripts[static_cast<size_t>(rank)]);
      tell(event::WorkerSpawned{0, rank, rank, pids.at(rank)});
    }
  }
  void tell(EventBody body) {
    story.say(std::move(body));
    sampler->observe(story.last());
  }
  std::vector<RankSample> samples_when(const std::function<bool(const RankSample&)>& wanted) {
    std::vector<RankSample> samples;
    const bool come = run_until([&] {
      samples = sampler->samples();
      return !samples.empty() && wanted(samples[0]);
    });
    REQUIRE(come);
    return samples;
  }
};

}  // namespace

TEST_CASE_FIXTURE(SamplerTest, "a worker's processor, memory, output and progress are seen") {
  run({"echo 'step 3/10 loss: 0.5'; while :; do :; done", "sleep 100"});
  // What it says and what it uses are seen each in its own time.
  const auto samples =
      samples_when([](const RankSample& one) { return one.cpu > 0.01 && one.step == 3; });
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].rank == 0);
  CHECK(samples[0].rss_bytes > 0);
  CHECK(samples[0].steps == 10);
  CHECK(samples[0].loss == 0.5);
  CHECK(samples[0].last_output_us > 0);
  CHECK(samples[1].rank == 1);
  CHECK(samples[1].last_output_us == 0);
  CHECK(samples[1].step == -1);
}

TEST_CASE_FIXTURE(SamplerTest, "what a worker's page tells wins over what its lines seem to say") {
  testing::WrittenPage written;
  written.own(0, 1);
  written->progress.step = 41;
  written->progress.total = 100;
  written->progress.heartbeat_ns = testing::monotonic_ns() - 5'000'000'000;
  std::strcpy(written->progress.named[0].name, "accuracy");
  written->progress.named[0].value = 0.5;
  written->progress.values = 1;
  auto& block = written.communicator(0, 1, 0, {0});
  testing::WrittenPage::enter(block, {});
  page = std::make_shared<const UniqueFd>(::dup(written.fd()));
  run({"echo 'step 3/10 loss: 0.5'; sleep 100"});
  const auto samples = samples_when([](const RankSample& one) { return one.step == 41; });
  CHECK(samples[0].steps == 100);
  CHECK(samples[0].values == std::vector<std::pair<std::string, double>>{{"accuracy", 0.5}});
  const int64_t age_us = samples[0].time_us - samples[0].heartbeat_us;
  CHECK(age_us > 4'900'000);
  CHECK(age_us < 60'000'000);
  REQUIRE(samples[0].operations);
  CHECK(samples[0].operations->communicators.at(0).calls.size() == 1);
}

TEST_CASE_FIXTURE(SamplerTest, "of a stream that goes straight to its file the file tells") {
  plan.options.redirects = "3";
  run({"echo 'step 7/9'; sleep 100"});
  const auto samples = samples_when([](const RankSample& one) { return one.step >= 0; });
  CHECK(samples[0].step == 7);
  CHECK(samples[0].last_output_us > 0);
}

TEST_CASE_FIXTURE(SamplerTest, "who asks again at once gets what is there, without a new look") {
  run({"sleep 100"});
  samples_when([](const RankSample&) { return true; });
  CHECK(looks == 1);
  for (int i = 0; i < 100; ++i)
    sampler->samples();
  run_until([] { return false; }, Milliseconds(100));
  CHECK(looks == 1);
}

TEST_CASE_FIXTURE(SamplerTest, "a worker that has ended has no sample any more") {
  run({"sleep 100"});
  samples_when([](const RankSample&) { return true; });
  tell(event::WorkerExited{0, 0, 0, pids.at(0), 0, 0});
  CHECK(sampler->samples().empty());
}

TEST_CASE_FIXTURE(SamplerTest, "it looks by itself, for those who come later") {
  run({"sleep 100"});
  CHECK(run_until([this] { return looks > 0; }));
}

TEST_CASE_FIXTURE(SamplerTest, "it may go while it looks") {
  run({"sleep 100"});
  sampler->samples();
  sampler.reset();
  CHECK(run_until([this] { return !loop.has_requests(); }));
  CHECK(looks == 0);
}

TEST_CASE_FIXTURE(SamplerTest, "a worker's GPU is found by its process") {
  run({"sleep 100"});
  setenv("MUSTER_FAKE_GPU_PID", std::to_string(pids.at(0)).c_str(), 1);
  const auto samples = samples_when([](const RankSample& one) { return one.gpu >= 0; });
  unsetenv("MUSTER_FAKE_GPU_PID");
  CHECK(samples[0].gpu == 0.2);
  CHECK(samples[0].gpu_memory_bytes == 12345);
}

namespace {

int64_t quiet_us(const RankSample& sample) {
  return sample.alive_us > 0 ? sample.time_us - sample.alive_us : 0;
}

}  // namespace

TEST_CASE_FIXTURE(SamplerTest, "each sign of life counts, and each way to show none is told") {
  every = Milliseconds(1'000);
  gpus = false;
  run({"sleep 100", "while :; do :; done", "while :; do echo; sleep 0.3; done",
       "echo 'Traceback (most recent call last):' >&2; echo '  File \"a.py\", line 1' >&2; "
       "echo 'KeyError: 7' >&2; sleep 100"});
  std::vector<RankSample> samples;
  REQUIRE(run_until([&] {
    samples = sampler->samples();
    return samples.size() == 4 && quiet_us(samples[0]) > 2'500'000 && samples[1].spins &&
           quiet_us(samples[1]) > 2'500'000 && !samples[3].traceback.empty();
  }));
  CHECK(samples[0].state == 'S');
  CHECK(samples[0].wait_channel.find("sleep") != std::string::npos);
  CHECK_FALSE(samples[0].spins);
  CHECK(samples[0].traceback.empty());
  CHECK(quiet_us(samples[2]) < 2'000'000);
  CHECK(samples[3].traceback.find("KeyError: 7") == 0);
}

TEST_CASE_FIXTURE(SamplerTest,
                  "what a worker writes into its file is its step, and a sign of life") {
  every = Milliseconds(1'000);
  gpus = false;
  progress = std::make_shared<const UniqueFd>(::memfd_create("progress", MFD_CLOEXEC));
  run({"echo 'step 3/10'; sleep 100"});
  samples_when([](const RankSample& one) { return quiet_us(one) > 1'500'000; });
  REQUIRE(::write(progress->get(), "7/9", 3) == 3);
  const auto samples = samples_when([](const RankSample& one) { return one.step == 7; });
  CHECK(samples[0].steps == 9);
  CHECK(quiet_us(samples[0]) == 0);
}

TEST_CASE_FIXTURE(SamplerTest, "a line at this moment ends the silence at once") {
  every = Milliseconds(1'000);
  gpus = false;
  run({"read x < " + dir.path + "/fifo; echo; sleep 100"});
  REQUIRE(::mkfifo((dir.path + "/fifo").c_str(), 0600) == 0);
  samples_when([](const RankSample& one) { return quiet_us(one) > 1'500'000; });
  const UniqueFd fifo(::open((dir.path + "/fifo").c_str(), O_WRONLY | O_CLOEXEC));
  REQUIRE(::write(fifo.get(), "go\n", 3) == 3);
  samples_when([](const RankSample& one) {
    return one.last_output_us > 0 && one.alive_us >= one.last_output_us;
  });
}

TEST_CASE_FIXTURE(SamplerTest, "the GPU of a worker that has died tells what is wrong with it") {
  run({"sleep 100"});
  setenv("MUSTER_FAKE_GPU_TROUBLE", "1", 1);
  std::optional<GpuReading> gpu;
  CHECK(run_until([&] {
    gpu = sampler->gpu_of(0);
    return gpu.has_value();
  }));
  unsetenv("MUSTER_FAKE_GPU_TROUBLE");
  REQUIRE(gpu);
  CHECK(gpu->pci == "0000:1a:00.0");
  CHECK(gpu->memory_total == int64_t{80} << 30);
  CHECK(gpu->uncorrected_errors == 3);
  CHECK(gpu->repair_pending);
  CHECK_FALSE(gpu->lost);
  CHECK_FALSE(sampler->gpu_of(7));
}

TEST_CASE_FIXTURE(ServerTest, "what a worker reports in the store wins over its lines") {
  ReportedProgress reported;
  std::vector<RankSample> samples(2);
  samples[1].rank = 1;
  samples[1].step = 99;
  server->set("/muster/progress/1", R"({"step": 5, "steps": 10, "loss": 2})");
  reported.add(0, *server, samples);
  CHECK(samples[0].step == -1);
  CHECK(samples[1].step == 5);
  CHECK(samples[1].steps == 10);
  CHECK(samples[1].loss == 2.0);
  // A new step is a sign of life.
  samples[1].alive_us = samples[1].time_us = 1'000'000;
  samples[1].spins = true;
  server->set("/muster/progress/1", R"({"step": 6})");
  reported.add(0, *server, samples);
  CHECK(samples[1].alive_us > 1'700'000'000'000'000);
  CHECK_FALSE(samples[1].spins);
  server->set("/muster/progress/1", "nonsense");
  samples[1] = RankSample();
  samples[1].rank = 1;
  reported.add(1, *server, samples);
  CHECK(samples[1].step == -1);
}
