// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

// Where a cgroup lies: `mount` is the root of what can be seen of the hierarchy, `path` begins with
// "/" or is empty.
struct CgroupPlace {
  std::string mount;
  std::string path;
  // Nothing is above `mount`: no container hides it. Judged by the mount alone, which a namespace
  // of cgroups hides too.
  bool from_root = false;
  std::string directory() const { return mount + path; }
};

// This process's cgroup of a v1 controller ("memory"), from the texts of /proc/self/cgroup and
// /proc/self/mountinfo; with "" the one of v2. Empty if there is none or it lies outside of what is
// mounted.
std::optional<CgroupPlace> cgroup_place(std::string_view controller, std::string_view cgroup,
                                        std::string_view mountinfo);

// The directory of this process's cgroup v2, from the texts of /proc/self/cgroup and
// /proc/self/mountinfo. Empty if there is none or it lies outside of what is mounted.
std::optional<std::string> cgroup2_directory(std::string_view cgroup, std::string_view mountinfo);

// One cgroup per worker below this process's own: muster.<pid>/rank_<n>. Its one use is
// cgroup.kill, which reaches even those who left the worker's process group and session. Owned by a
// WorkerGroup; removed with it.
class CgroupTree {
 public:
  // An error where cgroup v2 is missing or not ours to write, which is the usual case: then
  // process groups and the sweep do the work alone.
  static Result<std::unique_ptr<CgroupTree>> make();
  ~CgroupTree();
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  // Makes a worker's cgroup. The descriptor of its directory is for SpawnSpec::cgroup; -1 if it
  // could not be made.
  UniqueFd add(int local_rank);

  // SIGKILL to everything in any of them.
  void kill_all();

 private:
  explicit CgroupTree(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// For the front, after its supervisor was killed.
void kill_cgroups_of(int supervisor);
void remove_cgroups_of(int supervisor);

}  // namespace muster
