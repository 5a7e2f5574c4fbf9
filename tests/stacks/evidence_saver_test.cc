// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/evidence_saver.h"

#include <signal.h>

#include <filesystem>
#include <memory>

#include "logs/temp_dir.h"
#include "stacks/started_worker.h"

using namespace muster;

namespace {

struct SaverTest : LoopTest {
  TempDir dir;
  Recorder recorder;
  std::vector<std::unique_ptr<testing::StartedWorker>> workers;
  std::vector<event::EvidenceSaved> saved;  // as recorded
  std::unique_ptr<EvidenceSaver> saver;

  SaverTest() {
    recorder.observe([this](const JobState&, const Event& event) {
      if (const auto* one = std::get_if<event::EvidenceSaved>(&event.body)) saved.push_back(*one);
      if (saver) saver->observe(event);
    });
    recorder.record(event::JobStarted{});
  }
  void make(const std::string& run_dir) {
    saver =
        std::make_unique<EvidenceSaver>(EvidenceSaver::Parts{loop, recorder, run_dir, "node-a"});
  }
  void run(int count) {
    std::filesystem::create_directories(dir.path + "/attempt_0");
    event::AttemptStarted started;
    started.world_size = count;
    started.nodes = {{0, "node-a", 0, count}};
    recorder.record(started);
    for (int rank = 0; rank < count; ++rank) {
      workers.push_back(
          std::make_unique<testing::StartedWorker>(std::vector<std::string>{"/bin/sleep", "100"}));
      recorder.record(event::WorkerSpawned{0, rank, rank, workers.back()->pid});
    }
  }
  bool run_until_saved(size_t count) {
    return run_until([&] { return saved.size() >= count; });
  }
};

}  // namespace

TEST_CASE_FIXTURE(SaverTest, "each rank has its file, and the stopped one is named") {
  make(dir.path);
  run(3);
  ::kill(workers[2]->pid, SIGSTOP);
  REQUIRE(workers[2]->until([&] { return read_proc_stat(workers[2]->pid)->state == 'T'; }));
  for (int rank : {0, 1}) {
    const int pid = workers[static_cast<size_t>(rank)]->pid;
    REQUIRE(workers[0]->until([&] { return read_proc_stat(pid)->comm == "sleep"; }));
    REQUIRE(workers[0]->until([&] { return read_proc_stat(pid)->state == 'S'; }));
  }
  std::vector<event::EvidenceSaved> told;
  saver->save("stalled", [&](const event::EvidenceSaved& one) { told.push_back(one); });
  CHECK(saver->busy());
  REQUIRE(run_until_saved(1));
  CHECK_FALSE(saver->busy());
  REQUIRE(told.size() == 1);
  CHECK(saved[0].host == "node-a");
  CHECK(saved[0].why == "stalled");
  CHECK(saved[0].trouble == "");
  CHECK(saved[0].folder == dir.path + "/attempt_0/stacks_0");
  REQUIRE(saved[0].groups.size() == 2);
  CHECK(saved[0].groups[0].find("ranks 0-1: ") == 0);
  CHECK(saved[0].groups[1].find("rank 2 differs: ") == 0);
  CHECK(saved[0].groups[1].find("SIGSTOP") != std::string::npos);
  const std::string text = read_file(saved[0].folder + "/rank_2.txt");
  CHECK(text.find("rank 2 (pid " + std::to_string(workers[2]->pid) + ") on node-a at ") == 0);
  CHECK(text.find(": stalled\n") != std::string::npos);
  CHECK(recorder.state().current()->saved.size() == 1);
}

TEST_CASE_FIXTURE(SaverTest, "who asks while it runs shares the result, who asks later gets more") {
  make(dir.path);
  run(1);
  int told = 0;
  saver->save("one", [&](const event::EvidenceSaved&) { ++told; });
  saver->save("two", [&](const event::EvidenceSaved&) { ++told; });
  REQUIRE(run_until_saved(1));
  CHECK(told == 2);
  saver->save("three");
  REQUIRE(run_until_saved(2));
  CHECK(told == 2);
  CHECK(saved[1].folder == dir.path + "/attempt_0/stacks_1");
}

TEST_CASE_FIXTURE(SaverTest, "without logs the groups are told and nothing is written") {
  make("");
  run(1);
  saver->save("asked");
  REQUIRE(run_until_saved(1));
  CHECK(saved[0].folder == "");
  CHECK(saved[0].groups.size() == 1);
  CHECK(saved[0].trouble == "");
}

TEST_CASE_FIXTURE(SaverTest,
                  "where nothing can be written, that is said and the groups are there") {
  make(dir.path);
  run(1);
  std::filesystem::remove_all(dir.path);
  saver->save("asked");
  REQUIRE(run_until_saved(1));
  CHECK(saved[0].folder == "");
  CHECK(saved[0].groups.size() == 1);
  CHECK(saved[0].trouble.find("No such file or directory") != std::string::npos);
}

TEST_CASE_FIXTURE(SaverTest, "without workers there is a record that says so") {
  make(dir.path);
  saver->save("asked");
  REQUIRE(run_until_saved(1));
  CHECK(saved[0].trouble == "no worker runs here");
}

TEST_CASE_FIXTURE(SaverTest, "one attempt gets only so many") {
  make("");
  run(1);
  for (int i = 0; i <= EvidenceSaver::kMaxSaves; ++i) {
    saver->save("asked");
    REQUIRE(run_until_saved(static_cast<size_t>(i) + 1));
  }
  CHECK(saved.back().trouble.find("no more") != std::string::npos);
  CHECK(saved[saved.size() - 2].trouble == "");
}

TEST_CASE_FIXTURE(SaverTest, "when the workers are told to stop, it ends with what it has") {
  make(dir.path);
  run(1);
  saver->save("asked");
  // The probe is on its way from the second turn on.
  run_until([this] { return saver->busy(); });
  loop.post([] {});
  bool turned = false;
  loop.post([&] { turned = true; });
  run_until([&] { return turned; });
  recorder.record(event::SignalSent{0, 0, workers[0]->pid, SIGTERM, false, StopReason::kFailure});
  REQUIRE(run_until_saved(1));
  CHECK_FALSE(saver->busy());
}
