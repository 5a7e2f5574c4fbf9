// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

// A cgroup that counts this process's memory.
struct MemoryGroup {
  std::string name;       // as the kernel has it: "/slurm/job_7"
  std::string directory;  // of its files
  bool unified = false;   // v2
};

struct MemoryGroups {
  std::vector<MemoryGroup> groups;  // this process's own first, then those above it
  bool complete = false;            // the last one is the machine's root
};

// From the texts of /proc/self/cgroup and /proc/self/mountinfo.
MemoryGroups memory_groups(std::string_view cgroup, std::string_view mountinfo);

// Tells whether the kernel ended processes for want of memory around this node's workers: it counts
// them in the cgroup that they are in (v2: in those below too), and without one for the whole
// machine. Owned by an attempt's Surroundings. Only reads counters, which never waits for anything.
class MemoryWatch {
 public:
  // Counts from here on. `proc` is where procfs is mounted.
  explicit MemoryWatch(const std::string& proc = kProc);
  explicit MemoryWatch(MemoryGroups groups, std::string proc = kProc);

  // At the death of a worker: what the kernel did since the start, if it is not the death of an
  // earlier one. `killed`: by a SIGKILL that muster did not send, which then accounts for one.
  std::optional<MemoryTrouble> at_death(bool killed);

 private:
  struct Counts {
    int64_t kills = 0;
    std::vector<int64_t> hits;  // for each group: how often its limit was in the way
  };
  Counts count() const;
  int64_t kills() const;
  void blame(const Counts& now, MemoryTrouble& trouble) const;

  std::string proc_;
  MemoryGroups groups_;
  Counts start_;
  int64_t told_ = 0;  // kills that earlier deaths account for
};

}  // namespace muster
