// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/memory_watch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diagnosis/run_program.h"
#include "skip.h"

namespace muster {

namespace {

constexpr const char* kHybrid =
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

// Files as a kernel shows them: a group "/job/step" below "/job" below a container's root.
struct FakeGroups {
  TestFolder folder;

  MemoryGroups unified() const {
    return {{{"/job/step", folder.file("job/step"), true}, {"/job", folder.file("job"), true}},
            false};
  }
  void events(const std::string& group, int64_t kills, int64_t hits) const {
    const std::string counts = "low 0\nhigh 0\nmax 7\noom " + std::to_string(hits) + "\noom_kill " +
                               std::to_string(kills) + "\noom_group_kill 0\n";
    (void)folder.write(group + "/memory.events", counts);
    (void)folder.write(group + "/memory.events.local", counts);
  }
  void limit(const std::string& group, const std::string& text) const {
    (void)folder.write(group + "/memory.max", text);
  }
  void machine(int64_t kills) const {
    (void)folder.write("proc/vmstat", "nr_free_pages 1\noom_kill " + std::to_string(kills) + "\n");
  }
  std::string proc() const { return folder.file("proc"); }
};

// A real v1 group with a limit, "" where none can be made.
std::string make_real_group() {
  const MemoryGroups own = memory_groups(read_proc_file("/proc/self/cgroup").value_or(""),
                                         read_proc_file("/proc/self/mountinfo").value_or(""));
  if (own.groups.empty() || own.groups.front().unified) return "";
  std::string path = own.groups.front().directory + "/muster_test_" + std::to_string(getpid());
  if (mkdir(path.c_str(), 0755) != 0) return "";
  const int fd = open((path + "/memory.limit_in_bytes").c_str(), O_WRONLY | O_CLOEXEC);
  const bool limited = fd >= 0 && write(fd, "33554432", 8) == 8;
  if (fd >= 0) close(fd);
  if (limited) return path;
  rmdir(path.c_str());
  return "";
}

// Of a child that enters the group and then takes twice its limit.
int run_into_limit(const std::string& group) {
  const int pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const int fd = open((group + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) _exit(1);
    constexpr size_t kSize = size_t{64} << 20;
    auto* memory = static_cast<volatile char*>(
        mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t at = 0; at < kSize; at += 4096)
      memory[at] = 1;
    _exit(2);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return status;
}

}  // namespace

TEST_CASE("the groups that count memory are found up to the root") {
  MemoryGroups v1 = memory_groups("4:cpu,memory:/a/b\n0::/z\n", kHybrid);
  REQUIRE(v1.groups.size() == 3);
  CHECK(v1.groups[0].name == "/a/b");
  CHECK(v1.groups[0].directory == "/sys/fs/cgroup/memory/a/b");
  CHECK(v1.groups[1].name == "/a");
  CHECK(v1.groups[2].name == "/");
  CHECK_FALSE(v1.groups[0].unified);
  MemoryGroups v2 =
      memory_groups("0::/docker/x/job\n",
                    "29 23 0:26 /docker/x /sys/fs/cgroup ro shared:9 - cgroup2 cgroup2 rw\n");
  REQUIRE(v2.groups.size() == 2);
  CHECK(v2.groups[0].name == "/job");
  CHECK(v2.groups[0].directory == "/sys/fs/cgroup/job");
  CHECK(v2.groups[1].directory == "/sys/fs/cgroup");
  CHECK(v2.groups[0].unified);
  CHECK_FALSE(v2.complete);
}

TEST_CASE("a process that is in no cgroup has none") {
  CHECK(memory_groups("", kHybrid).groups.empty());
  CHECK(memory_groups("4:memory:/a\n", "").groups.empty());
  CHECK(memory_groups("4:memory\nmemory:/\n:::\n", kHybrid).groups.empty());
}

TEST_CASE("a chain of groups without end is cut") {
  std::string path;
  for (int i = 0; i < 100; ++i)
    path += "/g";
  CHECK(memory_groups("0::" + path + "\n", kHybrid).groups.size() == 32);
}

TEST_CASE("a kill names the innermost group whose limit was in the way") {
  FakeGroups fake;
  fake.events("job/step", 5, 2);
  fake.events("job", 9, 3);
  fake.limit("job/step", "max\n");
  fake.limit("job", "17179869184\n");
  MemoryWatch watch(fake.unified(), fake.proc());
  CHECK_FALSE(watch.at_death(true));
  fake.events("job/step", 6, 2);
  fake.events("job", 10, 4);
  auto trouble = watch.at_death(true);
  REQUIRE(trouble);
  CHECK(trouble->cgroup == "/job");
  CHECK(trouble->oom_kills == 1);
  CHECK(trouble->limit_bytes == 17179869184);
}

TEST_CASE("a kill accounts for one death by SIGKILL, not for a later one") {
  FakeGroups fake;
  fake.events("job/step", 0, 0);
  fake.events("job", 0, 0);
  MemoryWatch watch(fake.unified(), fake.proc());
  fake.events("job/step", 1, 1);
  CHECK(watch.at_death(false));  // a child of it may have been killed
  CHECK(watch.at_death(true));
  CHECK_FALSE(watch.at_death(true));
  CHECK_FALSE(watch.at_death(false));
  fake.events("job/step", 3, 2);
  CHECK(watch.at_death(true)->oom_kills == 2);
  CHECK(watch.at_death(true)->oom_kills == 1);
}

TEST_CASE("without a limit in the way the group is named, and the machine where all is seen") {
  FakeGroups fake;
  fake.events("job/step", 0, 0);
  fake.events("job", 0, 0);
  MemoryGroups groups = fake.unified();
  MemoryWatch hidden(groups, fake.proc());
  groups.complete = true;
  MemoryWatch machine(groups, fake.proc());
  fake.events("job/step", 1, 0);
  CHECK(hidden.at_death(true)->cgroup == "/job/step");
  CHECK(machine.at_death(true)->cgroup == "");
}

TEST_CASE("where no group counts, the machine's count is taken") {
  FakeGroups fake;
  fake.machine(4);
  MemoryWatch watch(MemoryGroups{}, fake.proc());
  CHECK_FALSE(watch.at_death(true));
  fake.machine(5);
  auto trouble = watch.at_death(true);
  REQUIRE(trouble);
  CHECK(trouble->cgroup == "");
  CHECK(trouble->oom_kills == 1);
  // Neither groups nor a count: nothing is known, and nothing fails.
  CHECK_FALSE(MemoryWatch(MemoryGroups{}, fake.folder.file("none")).at_death(true));
}

TEST_CASE("a real kill at a real limit is counted") {
  const std::string path = make_real_group();
  if (path.empty()) return say_skipped("no cgroup v1 with memory that could be written");
  MemoryGroups groups{{{"/limited", path, false}}, false};
  {
    MemoryWatch watch(groups);
    const int status = run_into_limit(path);
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGKILL);
    auto trouble = watch.at_death(true);
    REQUIRE(trouble);
    CHECK(trouble->cgroup == "/limited");
    CHECK(trouble->oom_kills == 1);
    CHECK(trouble->limit_bytes == 33554432);
    CHECK_FALSE(watch.at_death(true));
  }
  CHECK(rmdir(path.c_str()) == 0);
}

}  // namespace muster
