// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/evidence/look.h"
#include "supervisor/evidence/memory_watch.h"

namespace muster {

// What is watched around the workers of a job on this node, so that their deaths can be explained.
// Owned by the job.
class Surroundings {
 public:
  // `folders`: where workers write besides the folder that they begin to run in, which is ours.
  explicit Surroundings(std::vector<Folder> folders);

  // The store's key that a process waited for when it ended, "" if none. Where the store is.
  void set_store_wait(std::function<std::string(int pid)> ask) { store_wait_ = std::move(ask); }

  // The GPU of a worker and what is wrong with it. Must not block: it may tell what it knows and
  // look again, since it is asked at the death and once more when the evidence is gathered.
  struct Gpu {
    std::string pci;      // "0000:17:00.0", "" if there is none
    std::string trouble;  // a line, "" if nothing is wrong
  };
  void set_gpu(std::function<Gpu(int local_rank)> ask) { gpu_ = std::move(ask); }

  // Before the first worker of an attempt is started: what the kernel counts and says from here on
  // is about them.
  void begin_attempt();

  // A worker that nobody stopped has just ended, not well. Reads what others would change by being
  // stopped; blocks for nothing.
  void note_death(int pid, int wait_status);

  // What was noted at the death of that worker.
  void fill(Evidence& evidence) const;

  // A look at the machine for those of this attempt who have died. While an earlier one still hangs
  // in a file system, it asks none again.
  std::shared_ptr<Look> begin_look(const std::vector<Evidence>& dead);

 private:
  std::vector<Folder> folders_;
  std::function<std::string(int)> store_wait_;
  std::function<Gpu(int)> gpu_;
  std::string folder_;
  int64_t began_ = 0;  // the attempt, unix seconds
  std::optional<MemoryWatch> memory_;
  std::shared_ptr<KernelLog> kernel_log_;
  std::unordered_map<int, MemoryTrouble> memory_at_death_;  // by pid
  std::weak_ptr<Look> last_asking_;  // the last one that asked the folders's file systems
};

}  // namespace muster
