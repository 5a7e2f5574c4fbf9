// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

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
