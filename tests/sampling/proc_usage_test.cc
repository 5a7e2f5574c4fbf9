// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/proc_usage.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "logs/temp_dir.h"
#include "sampling/ticking.h"

using namespace muster;

namespace {

// A procfs of our own making.
struct FakeProc : TempDir {
  void add(int pid, int ppid, int group, int ticks, int pages) {
    const std::string folder = path + "/" + std::to_string(pid);
    std::filesystem::create_directories(folder);
    write_file(folder + "/stat", std::to_string(pid) + " (a b) S " + std::to_string(ppid) + " " +
                                     std::to_string(group) + " 1 0 -1 0 0 0 0 0 " +
                                     std::to_string(ticks) + " 1 1 1 20 0 1 0 777 1000 " +
                                     std::to_string(pages) + " 0\n");
  }
};

}  // namespace

TEST_CASE_FIXTURE(FakeProc, "a worker's use is that of all its descendants") {
  const int64_t page = sysconf(_SC_PAGESIZE);
  add(10, 1, 10, 100, 5);
  add(11, 10, 10, 10, 6);
  add(12, 11, 12, 1, 7);
  add(20, 1, 20, 1000, 1);
  const ProcLook look = look_at_processes({10, 20, 30}, path);
  CHECK(look.usage[0].found);
  CHECK(look.usage[0].cpu_ticks == 100 + 10 + 1 + 3 * 3);
  CHECK(look.usage[0].rss_bytes == 18 * page);
  CHECK(look.usage[0].start_time == 777);
  CHECK(look.usage[1].cpu_ticks == 1003);
  CHECK_FALSE(look.usage[2].found);
  CHECK(look.root_of.at(12) == 0);
  CHECK(look.root_of.count(30) == 0);
}

TEST_CASE_FIXTURE(FakeProc, "an orphan of the worker's group still counts") {
  add(1, 0, 1, 5, 5);
  add(10, 1, 10, 1, 1);
  add(11, 1, 10, 40, 2);
  CHECK(look_at_processes({10}, path).usage[0].cpu_ticks == 47);
}

TEST_CASE_FIXTURE(FakeProc, "a ring of parents is no endless chain") {
  add(50, 51, 1, 1, 1);
  add(51, 50, 1, 1, 1);
  CHECK_FALSE(look_at_processes({10}, path).usage[0].found);
}

TEST_CASE("another process with the same pid is not compared with the one before") {
  const ProcUsage before{true, 5, 1000, 0};
  CHECK(cores_between(before, {true, 5, 1000 + 2 * static_cast<uint64_t>(sysconf(_SC_CLK_TCK)), 0},
                      1'000'000) == 2.0);
  CHECK(cores_between(before, {true, 6, 5000, 0}, 1'000'000) < 0);
  CHECK(cores_between(before, {false, 0, 0, 0}, 1'000'000) < 0);
  CHECK(cores_between(before, {true, 5, 900, 0}, 1'000'000) == 0);
}

TEST_CASE_FIXTURE(Ticking, "a real process that works is seen to work") {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    // The work is the child's child's.
    if (fork() == 0) {
      for (;;) {
      }
    }
    pause();
    _exit(0);
  }
  setpgid(pid, pid);
  ProcUsage usage;
  CHECK(run_until([&] {
    usage = look_at_processes({pid}).usage[0];
    return usage.cpu_ticks > 5;
  }));
  CHECK(usage.rss_bytes > 0);
  for (const auto& stat : descendants_of(pid))
    kill(stat.pid, SIGKILL);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}
