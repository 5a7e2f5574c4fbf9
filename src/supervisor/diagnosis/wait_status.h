// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace muster {

// A wait(2) status taken apart.
struct WaitStatus {
  int signal = 0;     // 0: it exited
  int exit_code = 0;  // the exit code, or 128 + signal as shells have it
  bool core_dumped = false;

  bool success() const { return signal == 0 && exit_code == 0; }
};

WaitStatus decode_wait_status(int status);

// "SIGKILL"; "SIGRTMIN+6" for real-time ones; "signal 99" for what has no name.
std::string signal_name(int signal);

// "exited with code 3", "killed by SIGSEGV (signal 11, core dumped)".
std::string describe_end(const WaitStatus& status);

}  // namespace muster
