// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/unique_fd.h"
#include "supervisor/diagnosis/diagnose.h"

namespace muster {

// What the kernel's log says about one process or one GPU.
struct KernelNote {
  enum class Kind { kOutOfMemory, kFault, kXid };
  Kind kind = Kind::kFault;
  int pid = 0;               // as the machine counts, of a thread for faults; 0: not told
  std::string pci;           // of an Xid: "0000:17:00"
  std::string memory_group;  // kOutOfMemory: the cgroup whose limit it was, "" for the machine
  int64_t limit_bytes = 0;
  std::string text;  // the line
};

// Makes notes of a log's lines, in their order. Pure.
class KernelNotes {
 public:
  static constexpr size_t kMaxNotes = 1024;  // the last ones stay

  // A record as /dev/kmsg gives it. What others than the kernel wrote there is ignored.
  void add_record(std::string_view record);
  void add_line(std::string_view line);
  std::vector<KernelNote> take() const { return {notes_.begin(), notes_.end()}; }

 private:
  void push(KernelNote note);

  std::deque<KernelNote> notes_;
  // What precedes a kill for want of memory in the log.
  std::string memory_group_;
  int64_t limit_bytes_ = 0;
};

// The kernel's log from the moment on when this was made. Where it may not be read it is empty.
class KernelLog {
 public:
  explicit KernelLog(const char* path = "/dev/kmsg");
  bool readable() const { return static_cast<bool>(fd_); }
  // All that has come since then. Never waits. Several threads may ask.
  std::vector<KernelNote> read();

 private:
  UniqueFd fd_;
  std::mutex mutex_;
  KernelNotes notes_;
};

// Gives each of the dead workers of this node the lines about it: about its process, one that its
// last lines name (a data loader's), or one that only it can have had: a thread of its own, the
// program behind a shell. `same_pids`: this process sees the pids that the kernel's log has.
void share_kernel_notes(const std::vector<KernelNote>& notes, bool same_pids,
                        std::vector<Evidence>& dead);

// False in a container with pids of its own.
bool sees_machine_pids();

}  // namespace muster
