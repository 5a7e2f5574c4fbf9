// SPDX-License-Identifier: Apache-2.0
#include "supervisor/evidence/surroundings.h"

#include <signal.h>
#include <time.h>

#include <filesystem>
#include <utility>

#include "supervisor/diagnosis/wait_status.h"

namespace muster {

Surroundings::Surroundings(std::vector<Folder> folders) : folders_(std::move(folders)) {
  std::error_code error;
  folder_ = std::filesystem::current_path(error).string();
  folders_.push_back({folder_, "working folder"});
}

void Surroundings::begin_attempt() {
  began_ = time(nullptr);
  memory_.emplace();
  kernel_log_ = std::make_shared<KernelLog>();
  memory_at_death_.clear();
}

void Surroundings::note_death(int pid, int wait_status) {
  const bool killed = decode_wait_status(wait_status).signal == SIGKILL;
  if (auto trouble = memory_->at_death(killed)) memory_at_death_.insert_or_assign(pid, *trouble);
}

void Surroundings::fill(Evidence& evidence) const {
  auto memory = memory_at_death_.find(evidence.pid);
  if (memory != memory_at_death_.end()) evidence.memory = memory->second;
  if (gpu_) {
    Gpu gpu = gpu_(evidence.local_rank);
    evidence.gpu = std::move(gpu.pci);
    evidence.gpu_trouble = std::move(gpu.trouble);
  }
  if (store_wait_ && evidence.pid > 0) evidence.store_wait = store_wait_(evidence.pid);
}

std::shared_ptr<Look> Surroundings::begin_look(const std::vector<Evidence>& dead) {
  Look::Plan plan;
  plan.kernel_log = kernel_log_;
  plan.folder = folder_;
  // One that hangs holds itself.
  const bool asks = last_asking_.expired();
  if (asks) plan.folders = folders_;
  for (const Evidence& evidence : dead) {
    if (evidence.spawn_errno == 0 && decode_wait_status(evidence.wait_status).core_dumped) {
      plan.dumped.push_back({evidence.pid, began_});
    }
  }
  auto look = std::make_shared<Look>(std::move(plan));
  if (asks) last_asking_ = look;
  return look;
}

}  // namespace muster
