// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/evidence/memory_watch.h"

namespace muster {

// What is watched around the workers of one attempt, so that their deaths can be explained. Made
// before the first of them is started, owned by the job.
class Surroundings {
 public:
  // A worker that nobody stopped has just ended, not well. Reads what others would change by being
  // stopped; blocks for nothing.
  void note_death(int pid, int wait_status);

  // What was noted at the death of that worker.
  void fill(Evidence& evidence) const;

 private:
  MemoryWatch memory_;
  std::unordered_map<int, MemoryTrouble> memory_at_death_;  // by pid
};

}  // namespace muster
