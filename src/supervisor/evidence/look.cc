// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/look.h"

#include <utility>

#include "supervisor/evidence/core_file.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

// What cannot hang first.
void Look::run() {
  if (plan_.kernel_log) {
    std::vector<KernelNote> notes = plan_.kernel_log->read();
    const std::lock_guard lock(mutex_);
    notes_ = std::move(notes);
  }
  std::vector<FullDisk> full = full_disks(plan_.folders, asking_);
  {
    const std::lock_guard lock(mutex_);
    full_ = std::move(full);
  }
  if (plan_.dumped.empty()) return;
  const std::string pattern = read_proc_file("/proc/sys/kernel/core_pattern").value_or("");
  for (const Dump& dump : plan_.dumped) {
    std::string core = core_of(pattern, dump.pid, sees_machine_pids(), plan_.folder, dump.since);
    const std::lock_guard lock(mutex_);
    cores_.emplace(dump.pid, std::move(core));
  }
}

void Look::add_to(std::vector<Evidence>& dead) {
  const std::lock_guard lock(mutex_);
  share_kernel_notes(notes_, sees_machine_pids(), dead);
  const size_t asking = asking_;
  for (Evidence& evidence : dead) {
    evidence.full_disks = full_;
    auto core = cores_.find(evidence.pid);
    if (core != cores_.end()) evidence.core = core->second;
    if (asking < plan_.folders.size()) {
      evidence.silent_folder = folder_words(plan_.folders[asking]);
    }
  }
}

}  // namespace muster
