// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "supervisor/workers/proc_fs.h"

namespace muster {

// What a process and all that belongs to it use: its descendants, and those whose parent has died
// but who are still in its process group.
struct ProcUsage {
  bool found = false;
  uint64_t start_time = 0;  // of the process itself: with its pid it is nobody else
  // Of all that live now and of those that they have waited for. A child that ends goes on to count
  // in its parent, so the sum only grows as long as parents wait for their children.
  uint64_t cpu_ticks = 0;
  int64_t rss_bytes = 0;  // pages that several share count for each of them
  uint64_t system_ticks = 0;
  uint64_t faults = 0;
  uint64_t members = 0;  // changes when one of them comes or goes
};

struct ProcMember {
  int pid = 0;
  int ppid = 0;
  char state = '?';
};

struct ProcLook {
  std::vector<ProcUsage> usage;                  // in the order of the roots
  std::unordered_map<int, size_t> root_of;       // of every process that belongs to one: which
  std::vector<std::vector<ProcMember>> members;  // in the order of the roots
};

// One look at every process of the machine; blocks.
ProcLook look_at_processes(const std::vector<int>& roots, const std::string& proc = kProc);

// Cores in use between two looks; negative if they cannot be compared.
double cores_between(const ProcUsage& before, const ProcUsage& after, int64_t elapsed_us);

}  // namespace muster
