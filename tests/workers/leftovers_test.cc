// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "skip.h"
#include "supervisor/workers/proc_fs.h"
#include "workers/workers_test.h"

namespace muster {

namespace {

constexpr Milliseconds kNever{600'000};

// A cgroup of the v1 freezer, where this machine has it.
struct Freezer {
  std::string path = "/sys/fs/cgroup/freezer/muster_test." + std::to_string(getpid());
  Freezer() { mkdir(path.c_str(), 0755); }
  ~Freezer() {
    thaw();
    rmdir(path.c_str());
  }
  bool usable() const { return access((path + "/freezer.state").c_str(), W_OK) == 0; }
  void freeze(int pid) {
    std::ofstream(path + "/cgroup.procs") << pid;
    std::ofstream(path + "/freezer.state") << "FROZEN";
  }
  void thaw() { std::ofstream(path + "/freezer.state") << "THAWED"; }
};

}  // namespace

TEST_CASE_FIXTURE(WorkersTest, "a daemon that a finished worker left is ended and named") {
  make_group({kNever, kNever, Milliseconds(10)});
  start_ready(0, "leave_behind", {"d", "0"});
  group->seal();
  REQUIRE(run_until_gone());
  REQUIRE(found.size() == 1);
  CHECK(found[0].command == "left-behind");
  CHECK(found[0].ended);
  CHECK(found[0].fate == "ended by SIGTERM");
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].local_rank == -1);
  CHECK(sent[0].pid == found[0].pid);
  CHECK(sent[0].reason == StopReason::kFinished);
}

TEST_CASE_FIXTURE(WorkersTest, "a background child of a worker that exited is ended too") {
  make_group({kNever, kNever, Milliseconds(10)});
  start_ready(0, "leave_behind", {"-", "0"});
  group->seal();
  REQUIRE(run_until_gone());
  REQUIRE(found.size() == 1);
  CHECK(found[0].fate == "ended by SIGTERM");
}

TEST_CASE_FIXTURE(WorkersTest, "what ignores SIGTERM is killed") {
  make_group({Milliseconds(50), kNever, Milliseconds(0)});
  start_ready(0, "leave_behind", {"di", "1"});
  start_ready(1, "leave_behind", {"i", "1"});
  group->seal();
  REQUIRE(run_until_gone());
  REQUIRE(found.size() == 2);
  CHECK(found[0].fate == "ended by SIGKILL");
  CHECK(found[1].fate == "ended by SIGKILL");
}

TEST_CASE_FIXTURE(WorkersTest, "after a success, what ends by itself is left alone") {
  make_group({kNever, kNever, kNever});
  readers.push_back(std::make_unique<Reader>(loop));
  SpawnSpec spec;
  spec.executable = "/bin/sh";
  spec.argv = {"sh", "-c", "(sleep 0.2; echo late) & exit 0"};
  spec.environment = {"PATH=/usr/bin:/bin"};
  spec.stdio[0].kind = StdioSource::Kind::kNull;
  spec.stdio[1] = {StdioSource::Kind::kFd, readers[0]->writer(), ""};
  spec.stdio[2].kind = StdioSource::Kind::kNull;
  REQUIRE(group->spawn(0, spec).has_value());
  readers[0]->close_writer();
  group->seal();
  REQUIRE(run_until_gone());
  CHECK(sent.empty());
  CHECK(found.empty());
  REQUIRE(run_until([&] { return readers[0]->ended(); }));
  CHECK(readers[0]->text() == "late\n");
}

TEST_CASE_FIXTURE(WorkersTest, "a stop reaches the child of a shell without waiting for others") {
  make_group({kNever, kNever, kNever});
  // The worker ends at once on SIGTERM, as a shell does; its child is in the same session.
  start_ready(0, "leave_behind", {"-", "stay"});
  const int slow = start_ready(1, "ignore_term");
  group->seal();
  group->stop(SIGTERM, StopReason::kSignal);
  REQUIRE(run_until([&] { return sent.size() == 3; }));
  CHECK(sent[2].local_rank == -1);
  CHECK(sent[2].signal == SIGTERM);
  REQUIRE(run_until([&] { return marked_processes(mark) == std::vector<int>{slow}; }));
  group->kill_now(StopReason::kSignal);
  REQUIRE(run_until_gone());
}

TEST_CASE_FIXTURE(WorkersTest, "what ends with its worker needs no signal and is not reported") {
  // As Python's resource tracker does, which ignores SIGTERM.
  make_group({kNever, kNever, kNever});
  const int worker = start_ready(0, "leave_behind", {"ei", "stay"});
  group->seal();
  group->stop(SIGTERM, StopReason::kSignal);
  REQUIRE(run_until_gone());
  CHECK(found.empty());
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].pid == worker);
}

TEST_CASE_FIXTURE(WorkersTest, "kill_now ends workers, their children and daemons at once") {
  make_group({kNever, kNever, kNever});
  start_ready(0, "leave_behind", {"di", "stay"});
  start_ready(1, "leave_behind", {"i", "stay"});
  start_ready(2, "ignore_term");
  group->seal();
  CHECK(run_until([&] { return marked_processes(mark).size() == 5; }));
  group->kill_now(StopReason::kGuardLost);
  REQUIRE(run_until_gone());
  CHECK(ends.size() == 3);
  for (const event::LeftoverFound& one : found)
    CHECK(one.fate == "ended by SIGKILL");
}

TEST_CASE_FIXTURE(WorkersTest, "orphans are reaped while the workers run") {
  make_group({kNever, kNever, kNever});
  const int worker = start_ready(0, "leave_behind", {"d", "stay"});
  group->seal();
  int orphan = 0;
  for (const ProcStat& stat : descendants_of(getpid())) {
    if (stat.pid != worker && stat.ppid == getpid()) orphan = stat.pid;
  }
  REQUIRE(orphan != 0);
  kill(orphan, SIGKILL);
  CHECK(run_until([&] { return !read_proc_stat(orphan).has_value(); }));
  CHECK(group->running() == 1);
  group->kill_now(StopReason::kSignal);
  REQUIRE(run_until_gone());
}

TEST_CASE_FIXTURE(WorkersTest, "what is stuck in the kernel is named, and the group gives up") {
  // A frozen process is as deaf to SIGKILL as one that waits for a dead disk.
  Freezer freezer;
  if (!freezer.usable()) {
    say_skipped("no writable freezer cgroup (v1)");
    return;
  }
  make_group({Milliseconds(20), Milliseconds(100), Milliseconds(0)});
  const int stuck = start_ready(0, "ignore_term");
  start_ready(1, "leave_behind", {"d", "stay"});
  freezer.freeze(stuck);
  REQUIRE(run_until([&] { return read_proc_stat(stuck)->state == 'D'; }, Milliseconds(5'000)));
  group->seal();
  group->stop(SIGTERM, StopReason::kSignal);
  REQUIRE(run_until_gone());
  CHECK(end_of(0) == nullptr);
  CHECK(end_of(1) != nullptr);
  ends.clear();
  REQUIRE(!found.empty());
  CHECK(found[0].pid == stuck);
  CHECK(found[0].command == "ignore_term");
  CHECK(found[0].state == "D");
  CHECK_FALSE(found[0].ended);
  CHECK(found[0].wait_channel != "");
  CHECK(found[0].fate == "stuck in the kernel, where SIGKILL does not reach it");
  CHECK(marked_processes(mark) == std::vector<int>{stuck});

  // The next attempt is none the worse for it.
  gone = false;
  make_group();
  start(0, "exit_with", {"4"});
  freezer.thaw();
  group->seal();
  REQUIRE(run_until_gone());
  REQUIRE(end_of(0) != nullptr);
  CHECK(WEXITSTATUS(end_of(0)->wait_status) == 4);
}

TEST_CASE_FIXTURE(WorkersTest, "a chain of processes that fork and end is caught") {
  make_group({Milliseconds(50), kNever, Milliseconds(0)});
  start_ready(0, "fork_on");
  group->seal();
  REQUIRE(run_until_gone());
  CHECK(marked_processes(mark).empty());
}

}  // namespace muster
