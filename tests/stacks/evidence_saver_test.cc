// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/evidence_saver.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "logs/temp_dir.h"
#include "loop/unique_fd.h"
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
  saver->save("stalled");
  CHECK(saver->busy());
  REQUIRE(run_until_saved(1));
  CHECK_FALSE(saver->busy());
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
  saver->save("one");
  saver->save("two");
  REQUIRE(run_until_saved(1));
  CHECK_FALSE(saver->busy());
  saver->save("three");
  REQUIRE(run_until_saved(2));
  CHECK(saved[0].why == "one");
  CHECK(saved[1].why == "three");
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

namespace {

// The probe tells of rank 0, then waits for what rank 1's file has to say.
struct StuckTest : SaverTest {
  UniqueFd held;

  std::string thread_folder(int pid) const {
    const std::string id = std::to_string(pid);
    return dir.path + "/proc/" + id + "/task/" + id;
  }
  StuckTest() {
    std::string zeros;
    for (int i = 0; i < 50; ++i)
      zeros += " 0";
    for (int pid : {900, 901}) {
      std::filesystem::create_directories(thread_folder(pid));
      write_file(thread_folder(pid) + "/children", "");
    }
    write_file(thread_folder(900) + "/stat", "900 (train) S 1" + zeros);
    write_file(thread_folder(900) + "/wchan", "do_nap");
    REQUIRE(::mkfifo((thread_folder(901) + "/stat").c_str(), 0600) == 0);
    saver = std::make_unique<EvidenceSaver>(
        EvidenceSaver::Parts{loop, recorder, dir.path, "node-a", nullptr, dir.path + "/proc"});
    event::AttemptStarted started;
    started.world_size = 2;
    started.nodes = {{0, "node-a", 0, 2}};
    recorder.record(started);
    for (int rank : {0, 1})
      recorder.record(event::WorkerSpawned{0, rank, rank, 900 + rank});
  }
  void turn() {
    bool turned = false;
    loop.post([&] { turned = true; });
    REQUIRE(run_until([&] { return turned; }));
  }
  // Until the probe reads what nobody writes. What it told by then is still in the pipe.
  void get_stuck() {
    saver->save("asked");
    turn();
    held.reset(::open((thread_folder(901) + "/stat").c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(held);
  }
  void stop_workers() {
    recorder.record(event::SignalSent{0, 0, 900, SIGTERM, false, StopReason::kFailure});
  }
};

}  // namespace

TEST_CASE_FIXTURE(StuckTest, "when the workers are told to stop, it ends with what it has") {
  get_stuck();
  CHECK(saver->busy());
  stop_workers();
  stop_workers();
  REQUIRE(run_until_saved(1));
  CHECK_FALSE(saver->busy());
  CHECK(saved[0].groups == std::vector<std::string>{"rank 0: asleep in do_nap"});
  CHECK(saved[0].trouble == "the workers were told to stop before all was seen");
  turn();
  CHECK(saved.size() == 1);
}

TEST_CASE_FIXTURE(StuckTest, "where they are told to stop before it has begun, it does not begin") {
  saver->save("asked");
  stop_workers();
  REQUIRE(run_until_saved(1));
  CHECK(saved[0].trouble == "the workers were told to stop before all was seen");
  CHECK_FALSE(saver->busy());
  turn();
  CHECK(saved.size() == 1);
}

TEST_CASE_FIXTURE(StuckTest, "with the job it ends too, and nothing is recorded after that") {
  get_stuck();
  recorder.record(event::JobEnded{});
  CHECK_FALSE(saver->busy());
  turn();
  CHECK(saved.empty());
}
