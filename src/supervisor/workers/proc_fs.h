// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// What we need of /proc/<pid>/stat. A pid with its start time names one process for as long as the
// machine runs.
struct ProcStat {
  int pid = 0;
  std::string comm;
  char state = '?';
  int ppid = 0;
  int process_group = 0;
  int session = 0;
  uint64_t start_time = 0;  // clock ticks since boot
  // Clock ticks in which it ran, with those of the children that it has waited for.
  uint64_t cpu_ticks = 0;
  int64_t resident_pages = 0;
  uint64_t system_ticks = 0;  // of them in the kernel
  uint64_t faults = 0;        // pages that it had to be given, with those children likewise

  bool same_process(const ProcStat& other) const {
    return pid == other.pid && start_time == other.start_time;
  }
};

// Empty if malformed. The name may hold blanks, parentheses and line ends.
std::optional<ProcStat> parse_proc_stat(std::string_view text);

// "12 34 " -> {12, 34}; anything that is not a number ends it.
std::vector<int> parse_pid_list(std::string_view text);

// The following read a live procfs; `proc` is where it is mounted. None of them touches
// /proc/<pid>/cmdline: reading it waits for a lock that a process stuck in the kernel may hold.
inline constexpr const char* kProc = "/proc";

std::optional<std::string> read_proc_file(const std::string& path);

// Empty if there is no such process (any more).
std::optional<ProcStat> read_proc_stat(int pid, const std::string& proc = kProc);

// The name of the kernel function in which a process sleeps, empty if unknown.
std::string read_wait_channel(int pid, const std::string& proc = kProc);

// All that can be seen now.
std::vector<ProcStat> every_process(const std::string& proc = kProc);

// Every descendant of `root`, parents before children, zombies included, without those in `spared`
// and what is below them. Processes come and go meanwhile: a caller that wants none left asks until
// it gets none.
std::vector<ProcStat> descendants_of(int root, const std::set<int>& spared = {},
                                     const std::string& proc = kProc);

}  // namespace muster
