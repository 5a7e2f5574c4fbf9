// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "supervisor/diagnosis/diagnose.h"
#include "supervisor/evidence/folders.h"
#include "supervisor/evidence/kernel_log.h"

namespace muster {

// One look at the machine after deaths: the kernel's log, dumps of memory, the folders' room. Made
// on a thread that may hang in a file system; whoever waits for it takes what is there when it has
// waited long enough.
class Look {
 public:
  struct Dump {
    int pid = 0;
    int64_t since = 0;  // unix seconds, when the process was started
  };
  struct Plan {
    std::shared_ptr<KernelLog> kernel_log;
    std::vector<Folder> folders;
    std::string folder;        // where workers begin to run
    std::vector<Dump> dumped;  // those who left a dump of their memory
  };
  explicit Look(Plan plan) : plan_(std::move(plan)), asking_(plan_.folders.size()) {}

  // On the pool. Blocks.
  void run();

  // In the loop, at any time: adds to the evidence of the dead what has been found by now.
  void add_to(std::vector<Evidence>& dead);

 private:
  Plan plan_;
  std::mutex mutex_;
  std::vector<KernelNote> notes_;
  std::map<int, std::string> cores_;  // by pid
  std::vector<FullDisk> full_;
  std::atomic<size_t> asking_;  // the folder that is being looked at; their number: none
};

}  // namespace muster
