// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/proc_fs.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace muster {

namespace {

constexpr const char* kTail =
    " 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 200 18446744073709551615\n";

std::string stat_line(int pid, const std::string& comm, int ppid, char state = 'S') {
  return std::to_string(pid) + " (" + comm + ") " + state + " " + std::to_string(ppid) + " 70 60" +
         kTail;
}

// A fake procfs in a folder of its own.
struct FakeProc {
  std::filesystem::path root;
  FakeProc() {
    char name[] = "/tmp/muster_proc_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    root = name;
  }
  ~FakeProc() { std::filesystem::remove_all(root); }
  void add(int pid, int ppid, const char* children) {
    auto task = root / std::to_string(pid) / "task" / std::to_string(pid);
    std::filesystem::create_directories(task);
    std::ofstream(root / std::to_string(pid) / "stat") << stat_line(pid, "p", ppid);
    std::ofstream(task / "stat") << stat_line(pid, "p", ppid);
    if (children != nullptr) std::ofstream(task / "children") << children;
  }
  std::vector<int> descendants(int root_pid, const std::set<int>& spared = {}) {
    std::vector<int> pids;
    for (const ProcStat& stat : descendants_of(root_pid, spared, root))
      pids.push_back(stat.pid);
    std::sort(pids.begin(), pids.end());
    return pids;
  }
};

}  // namespace

TEST_CASE("a process name may hold blanks, parentheses and line ends") {
  for (const char* comm : {"python3", "a b", "x) S 1 (y", ")", "((", "tmux: server\n1"}) {
    CAPTURE(comm);
    auto stat = parse_proc_stat(stat_line(42, comm, 7, 'D'));
    REQUIRE(stat);
    CHECK(stat->comm == comm);
    CHECK(stat->pid == 42);
    CHECK(stat->state == 'D');
    CHECK(stat->ppid == 7);
    CHECK(stat->process_group == 70);
    CHECK(stat->session == 60);
    CHECK(stat->start_time == 987654);
    CHECK(stat->cpu_ticks == 5 + 6 + 7 + 8);
    CHECK(stat->resident_pages == 200);
  }
}

TEST_CASE("a damaged stat line is no process") {
  const std::string whole = stat_line(42, "x", 7);
  for (const std::string& text :
       {std::string(), std::string("42"), std::string("42 )x( S 1 2 3"), std::string("(x) S 1 2 3"),
        whole.substr(0, whole.find("987654"))}) {
    CAPTURE(text);
    CHECK_FALSE(parse_proc_stat(text));
  }
}

TEST_CASE("lists of pids are read up to what is no number") {
  CHECK(parse_pid_list("") == std::vector<int>{});
  CHECK(parse_pid_list("12 345 6 ") == std::vector<int>{12, 345, 6});
  CHECK(parse_pid_list("12 x 6") == std::vector<int>{12});
}

TEST_CASE("descendants of every depth are found, strangers are not") {
  for (bool with_lists : {true, false}) {
    CAPTURE(with_lists);
    FakeProc proc;
    proc.add(1, 0, with_lists ? "10 20 " : nullptr);
    proc.add(10, 1, with_lists ? "11 12 " : nullptr);
    proc.add(11, 10, with_lists ? "13" : nullptr);
    proc.add(12, 10, with_lists ? "" : nullptr);
    proc.add(13, 11, with_lists ? "" : nullptr);
    proc.add(20, 1, with_lists ? "21" : nullptr);
    proc.add(21, 20, with_lists ? "" : nullptr);
    CHECK(proc.descendants(10) == std::vector<int>{11, 12, 13});
    CHECK(proc.descendants(1, {10}) == std::vector<int>{20, 21});
    CHECK(proc.descendants(13).empty());
  }
}

TEST_CASE("a listed child that now has another parent is a stranger") {
  FakeProc proc;
  proc.add(10, 1, "11 12");
  proc.add(11, 10, "");
  proc.add(12, 99, "");  // the pid was used again meanwhile
  CHECK(proc.descendants(10) == std::vector<int>{11});
}

TEST_CASE("this process finds its own child, and nobody once that is reaped") {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  bool found = false;
  for (const ProcStat& stat : descendants_of(getpid()))
    found = found || (stat.pid == child && stat.ppid == getpid());
  CHECK(found);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK_FALSE(read_proc_stat(child).has_value());
}

}  // namespace muster
