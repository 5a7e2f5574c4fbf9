// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/wait_status.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

namespace muster {

WaitStatus decode_wait_status(int status) {
  WaitStatus result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.exit_code = 128 + result.signal;
    result.core_dumped = WCOREDUMP(status);
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
  return result;
}

std::string signal_name(int signal) {
  if (const char* name = sigabbrev_np(signal)) return std::string("SIG") + name;
  if (signal >= SIGRTMIN && signal <= SIGRTMAX) {
    int offset = signal - SIGRTMIN;
    return offset == 0 ? "SIGRTMIN" : "SIGRTMIN+" + std::to_string(offset);
  }
  return "signal " + std::to_string(signal);
}

std::string describe_end(const WaitStatus& status) {
  if (status.signal == 0) return "exited with code " + std::to_string(status.exit_code);
  std::string name = signal_name(status.signal);
  bool named = name.starts_with("SIG");
  std::string text = "killed by " + name;
  std::string detail = named ? "signal " + std::to_string(status.signal) : "";
  if (status.core_dumped) detail += detail.empty() ? "core dumped" : ", core dumped";
  return detail.empty() ? text : text + " (" + detail + ")";
}

}  // namespace muster
