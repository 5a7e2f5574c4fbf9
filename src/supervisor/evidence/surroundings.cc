// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/surroundings.h"

#include <signal.h>

#include "supervisor/diagnosis/wait_status.h"

namespace muster {

void Surroundings::note_death(int pid, int wait_status) {
  const bool killed = decode_wait_status(wait_status).signal == SIGKILL;
  if (auto trouble = memory_.at_death(killed)) memory_at_death_.insert_or_assign(pid, *trouble);
}

void Surroundings::fill(Evidence& evidence) const {
  auto memory = memory_at_death_.find(evidence.pid);
  if (memory != memory_at_death_.end()) evidence.memory = memory->second;
}

}  // namespace muster
