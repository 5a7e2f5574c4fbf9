// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/memory_watch.h"

#include <unistd.h>

#include <charconv>
#include <utility>

#include "supervisor/workers/cgroup.h"

// What the kernel counts, and where:
//   v2  memory.events        oom_kill: processes ended here and below, whoever's limit it was
//       memory.events.local  oom: how often this group's own limit left no way out
//   v1  memory.oom_control   oom_kill: processes of this group alone
//       memory.failcnt       how often this group's own limit was in the way
// The machine's root has no such files in v2; /proc/vmstat counts for the whole machine.

namespace muster {

namespace {

constexpr size_t kMaxGroups = 32;  // a chain of cgroups; the kernel's own bound is far higher
// What v1 shows for "no limit" is a little below 2^63.
constexpr int64_t kNoLimit = int64_t{1} << 60;

// The number behind `key` at the start of a line, 0 if there is none.
int64_t number_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.substr(0, key.size()) != key) continue;
    line.remove_prefix(key.size());
    if (!key.empty()) {
      if (line.empty() || line.front() != ' ') continue;
      line.remove_prefix(1);
    }
    int64_t number = 0;
    std::from_chars(line.data(), line.data() + line.size(), number);
    return number;
  }
  return 0;
}

int64_t read_number(const std::string& path, std::string_view key) {
  return number_after(read_proc_file(path).value_or(""), key);
}

int64_t limit_of(const MemoryGroup& group) {
  const char* file = group.unified ? "/memory.max" : "/memory.limit_in_bytes";
  const int64_t limit = read_number(group.directory + file, "");
  return limit < kNoLimit ? limit : 0;
}

int64_t hits_of(const MemoryGroup& group) {
  if (!group.unified) return read_number(group.directory + "/memory.failcnt", "");
  auto local = read_proc_file(group.directory + "/memory.events.local");
  // Before Linux 5.2 only the counts with those of the groups below.
  if (!local) local = read_proc_file(group.directory + "/memory.events");
  return number_after(local.value_or(""), "oom");
}

}  // namespace

MemoryGroups memory_groups(std::string_view cgroup, std::string_view mountinfo) {
  MemoryGroups found;
  // A controller belongs to one hierarchy: where v1 has it, v2 counts no memory.
  std::optional<CgroupPlace> place = cgroup_place("memory", cgroup, mountinfo);
  const bool unified = !place;
  if (!place) place = cgroup_place("", cgroup, mountinfo);
  if (!place) return found;
  std::string path = place->path;
  while (found.groups.size() < kMaxGroups) {
    found.groups.push_back({path.empty() ? "/" : path, place->mount + path, unified});
    if (path.empty()) break;
    path.erase(path.rfind('/'));
  }
  // Files that only the root has, or lacks, tell it from the root of a namespace.
  const std::string& top = place->mount;
  const bool root = unified ? access((top + "/cgroup.events").c_str(), F_OK) != 0
                            : access((top + "/release_agent").c_str(), F_OK) == 0;
  found.complete = place->from_root && root && found.groups.back().name == "/";
  return found;
}

MemoryWatch::MemoryWatch(const std::string& proc)
    : MemoryWatch(memory_groups(read_proc_file(proc + "/self/cgroup").value_or(""),
                                read_proc_file(proc + "/self/mountinfo").value_or("")),
                  proc) {}

MemoryWatch::MemoryWatch(MemoryGroups groups, std::string proc)
    : proc_(std::move(proc)), groups_(std::move(groups)), start_(count()) {}

int64_t MemoryWatch::kills() const {
  if (!groups_.groups.empty()) {
    const MemoryGroup& own = groups_.groups.front();
    const char* file = own.unified ? "/memory.events" : "/memory.oom_control";
    if (auto text = read_proc_file(own.directory + file)) return number_after(*text, "oom_kill");
  }
  return read_number(proc_ + "/vmstat", "oom_kill");
}

MemoryWatch::Counts MemoryWatch::count() const {
  Counts counts;
  counts.kills = kills();
  for (const MemoryGroup& group : groups_.groups)
    counts.hits.push_back(hits_of(group));
  return counts;
}

std::optional<MemoryTrouble> MemoryWatch::at_death(bool killed) {
  const int64_t fresh = kills() - start_.kills - told_;
  if (fresh <= 0) return std::nullopt;
  if (killed) ++told_;
  MemoryTrouble trouble;
  trouble.oom_kills = fresh;
  blame(count(), trouble);
  return trouble;
}

// The innermost group whose limit was in the way. If there is none, memory was short outside of
// what can be seen from here: on the machine, or in a group that a container hides.
void MemoryWatch::blame(const Counts& now, MemoryTrouble& trouble) const {
  for (size_t i = 0; i < groups_.groups.size(); ++i) {
    if (now.hits[i] <= start_.hits[i]) continue;
    trouble.cgroup = groups_.groups[i].name;
    trouble.limit_bytes = limit_of(groups_.groups[i]);
    return;
  }
  if (!groups_.complete && !groups_.groups.empty()) trouble.cgroup = groups_.groups.front().name;
}

}  // namespace muster
