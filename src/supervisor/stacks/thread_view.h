// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/stacks/python_stacks.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

// One call on a thread's own stack.
struct NativeFrame {
  std::string function;  // demangled, "" if nothing names the address
  std::string module;    // the file's name without its folders
  std::string source;    // "train.cc:42", "" if the file does not tell
};

// What can be seen of one thread without its help.
struct ThreadView {
  int tid = 0;
  std::string name;
  char state = '?';
  std::string wait_channel;         // the kernel's function in which it sleeps, "" if unknown
  std::string system_call;          // "futex", "" if it is in none or we may not know
  std::vector<std::string> kernel;  // its stack there, innermost first
  std::vector<NativeFrame> native;  // its own, innermost first
  std::string native_trouble;       // why there are none
  std::vector<PythonFrame> python;  // innermost first
};

struct ProcessView {
  int pid = 0;
  std::string name;
  std::vector<ThreadView> threads;  // the main one first
  int threads_left_out = 0;
  std::string trouble;
};

// A worker and what it has started.
struct RankView {
  int rank = 0;
  int pid = 0;
  std::vector<ProcessView> processes;  // the worker's main process first
  int processes_left_out = 0;
};

// Most that are looked at; the rest is counted.
inline constexpr size_t kMaxThreads = 512;   // of a process
inline constexpr size_t kMaxProcesses = 32;  // of a rank

// "asleep", "stopped (SIGSTOP or Ctrl-Z)", ...
std::string_view state_words(char state);

// The functions of /proc/<pid>/stack: "[<0>] futex_wait_queue+0x60/0x90" is futex_wait_queue.
std::vector<std::string> parse_kernel_stack(std::string_view text);

// The name of the call that /proc/<pid>/syscall tells, "" for a thread that runs or is in none.
std::string parse_system_call(std::string_view text);

// All of it but native and Python stacks. Blocks for as long as procfs does: nothing of it waits
// for a lock of the process. A process that is gone has no threads.
ProcessView view_process(int pid, const std::string& proc = kProc);
RankView view_rank(int rank, int pid, const std::string& proc = kProc);

}  // namespace muster
