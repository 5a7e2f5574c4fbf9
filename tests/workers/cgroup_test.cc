// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/cgroup.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "skip.h"
#include "supervisor/workers/proc_fs.h"
#include "workers/workers_test.h"

namespace muster {

namespace {

// Where the tree of this process is or would be.
std::string tree_directory() {
  auto base = cgroup2_directory(*read_proc_file("/proc/self/cgroup"),
                                *read_proc_file("/proc/self/mountinfo"));
  return base ? *base + "/muster." + std::to_string(getpid()) : std::string();
}

bool writable() {
  auto tree = CgroupTree::make();
  if (!tree) say_skipped(tree.error().message);
  return tree.has_value();
}

}  // namespace

TEST_CASE("the cgroup of this process is found in every usual layout") {
  const std::string unified =
      "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
  CHECK(cgroup2_directory("0::/user.slice/a.scope\n", unified) ==
        "/sys/fs/cgroup/user.slice/a.scope");
  CHECK(cgroup2_directory("0::/\n", unified) == "/sys/fs/cgroup");
  const std::string hybrid =
      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  CHECK(cgroup2_directory("9:name=systemd:/x\n4:memory:/y\n0::/z\n", hybrid) ==
        "/sys/fs/cgroup/unified/z");
  const std::string container =
      "29 23 0:26 /docker/abc /sys/fs/cgroup ro shared:9 master:4 - cgroup2 cgroup2 rw\n";
  CHECK(cgroup2_directory("0::/docker/abc/job\n", container) == "/sys/fs/cgroup/job");
  const std::string blank = "29 23 0:26 / /mnt/a\\040b rw - cgroup2 cgroup2 rw\n";
  CHECK(cgroup2_directory("0::/\n", blank) == "/mnt/a b");
}

TEST_CASE("a cgroup outside of what is mounted is none") {
  const std::string container = "29 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
  CHECK_FALSE(cgroup2_directory("0::/docker/abcd\n", container));
  CHECK_FALSE(cgroup2_directory("0::/../other\n", "1 2 0:3 / /sys rw - cgroup2 cgroup2 rw\n"));
  CHECK_FALSE(cgroup2_directory("4:memory:/y\n", container));
  CHECK_FALSE(cgroup2_directory("0::/\n", ""));
  CHECK_FALSE(cgroup2_directory("0::/\n", "29 23 0:26\n- cgroup2\n"));
  CHECK_FALSE(cgroup2_directory("", ""));
}

TEST_CASE_FIXTURE(WorkersTest, "each worker is in a cgroup of its own, and none stays") {
  if (!writable()) return;
  const std::string tree = tree_directory();
  make_group();
  const int first = start_ready(0, "ignore_term");
  const int second = start_ready(1, "leave_behind", {"d", "stay"});
  group->seal();
  CHECK(parse_pid_list(*read_proc_file(tree + "/rank_0/cgroup.procs")) == std::vector<int>{first});
  const std::string members = *read_proc_file(tree + "/rank_1/cgroup.procs");
  std::string lines = members;
  for (char& c : lines)
    c = c == '\n' ? ' ' : c;
  CHECK(members.find(std::to_string(second)) != std::string::npos);
  CHECK(parse_pid_list(lines).size() == 2);
  group->kill_now(StopReason::kSignal);
  REQUIRE(run_until_gone());
  CHECK_FALSE(std::filesystem::exists(tree));
}

TEST_CASE_FIXTURE(WorkersTest, "a worker starts even in a cgroup that was killed before") {
  if (!writable()) return;
  auto tree = CgroupTree::make();
  REQUIRE(tree.has_value());
  const UniqueFd cgroup = (*tree)->add(0);
  REQUIRE(cgroup);
  (*tree)->kill_all();
  SpawnSpec spec = helper_spec(mark, "ignore_term");
  spec.cgroup = cgroup.get();
  auto spawned = spawn(spec);
  REQUIRE(spawned.has_value());
  CHECK(waitpid(spawned->pid, nullptr, WNOHANG) == 0);
  CHECK(parse_pid_list(*read_proc_file(tree_directory() + "/rank_0/cgroup.procs")) ==
        std::vector<int>{spawned->pid});
  (*tree)->kill_all();
  int status = 0;
  CHECK(waitpid(spawned->pid, &status, 0) == spawned->pid);
  CHECK(WTERMSIG(status) == SIGKILL);
}

TEST_CASE_FIXTURE(WorkersTest, "who runs from the group and the session dies with the cgroup") {
  if (!writable()) return;
  make_group({Milliseconds(50), Milliseconds(600'000), Milliseconds(0)});
  start_ready(0, "fork_on", {"session"});
  group->seal();
  REQUIRE(run_until_gone());
  CHECK(marked_processes(mark).empty());
}

}  // namespace muster
