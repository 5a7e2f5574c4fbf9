// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <cstdint>
#include <set>

#include "loop/unique_fd.h"

namespace muster {

// What the front tells the supervisor about a signal. The sender's name is read here, at once,
// because a `kill` or `pkill` has ended by the time that anybody else asks.
struct SignalRecord {
  int32_t signal = 0;
  int32_t code = 0;  // si_code: SI_USER, SI_KERNEL ...
  int32_t pid = 0;
  uint32_t uid = 0;
  char command[16] = {};
};

SignalRecord describe_sender(int32_t signal, int32_t code, int32_t pid, uint32_t uid);

struct FrontPlan {
  UniqueFd socket;             // to the supervisor
  int supervisor = 0;          // its pid
  sigset_t relayed;            // blocked, as is SIGCHLD
  std::set<int> own_children;  // from before: a shell that was replaced by `exec muster` leaves its
                               // background jobs to us, and they are none of our business
};

// The front's whole life: relays signals and waits. Ends the process with the supervisor's exit
// status; if the supervisor was killed, ends everything that it left first.
[[noreturn]] void run_front(FrontPlan plan);

}  // namespace muster
