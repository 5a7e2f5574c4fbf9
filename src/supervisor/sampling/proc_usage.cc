// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/proc_usage.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace muster {

namespace {

// Longer chains of parents are not followed: the pictures of single processes were taken one after
// the other, and a pid that was used again may close a ring.
constexpr int kMaxDepth = 64;

class Owners {
 public:
  Owners(const std::vector<int>& roots, const std::vector<ProcStat>& all) {
    for (size_t i = 0; i < roots.size(); ++i)
      if (roots[i] > 0) root_at_.emplace(roots[i], i);
    for (const ProcStat& stat : all)
      parent_of_.emplace(stat.pid, stat.ppid);
  }

  std::optional<size_t> owner(const ProcStat& stat) const {
    int pid = stat.pid;
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      if (const auto root = root_at_.find(pid); root != root_at_.end()) return root->second;
      const auto parent = parent_of_.find(pid);
      if (parent == parent_of_.end()) break;
      pid = parent->second;
    }
    const auto group = root_at_.find(stat.process_group);
    return group == root_at_.end() ? std::nullopt : std::optional(group->second);
  }

 private:
  std::unordered_map<int, size_t> root_at_;
  std::unordered_map<int, int> parent_of_;
};

// Sums of these are as good as never equal for other sets of processes.
uint64_t hash_of(const ProcStat& stat) {
  uint64_t bits = (stat.start_time << 22) ^ static_cast<uint64_t>(stat.pid);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

}  // namespace

ProcLook look_at_processes(const std::vector<int>& roots, const std::string& proc) {
  const std::vector<ProcStat> all = every_process(proc);
  const Owners owners(roots, all);
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  ProcLook look;
  look.usage.resize(roots.size());
  look.members.resize(roots.size());
  for (const ProcStat& stat : all) {
    const std::optional<size_t> owner = owners.owner(stat);
    if (!owner) continue;
    look.root_of.emplace(stat.pid, *owner);
    ProcUsage& sum = look.usage[*owner];
    sum.cpu_ticks += stat.cpu_ticks;
    sum.rss_bytes += stat.resident_pages * page;
    sum.system_ticks += stat.system_ticks;
    sum.faults += stat.faults;
    sum.members += hash_of(stat);
    look.members[*owner].push_back({stat.pid, stat.ppid, stat.state});
    if (stat.pid != roots[*owner]) continue;
    sum.found = true;
    sum.start_time = stat.start_time;
  }
  return look;
}

double cores_between(const ProcUsage& before, const ProcUsage& after, int64_t elapsed_us) {
  const bool same = before.found && after.found && before.start_time == after.start_time;
  if (!same || elapsed_us <= 0) return -1;
  if (after.cpu_ticks <= before.cpu_ticks) return 0;
  const auto ticks = static_cast<double>(after.cpu_ticks - before.cpu_ticks);
  const auto ticks_per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks / ticks_per_s / (static_cast<double>(elapsed_us) / 1e6);
}

}  // namespace muster
