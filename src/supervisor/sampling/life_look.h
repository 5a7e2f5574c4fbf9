// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/sampling/proc_usage.h"
#include "supervisor/sampling/signs_of_life.h"

namespace muster {

// A closer look at a worker that shows no life at first sight. For the pool: /proc has many files,
// and one of them is not read while its process is in the middle of an exec.

// Empty if the worker itself cannot be read. Of its descendants what can be.
std::optional<LifeDetail> life_detail(int root, const std::vector<ProcMember>& members,
                                      const std::string& proc = kProc);

// How it waits: the state and the wait channel of the main thread that matters. Of `bash -c
// "python train.py"` that is the program's, not the shell's that waits for it. A process that is
// stopped, or stuck in the kernel, goes before others.
struct Waiting {
  char state = 0;
  std::string channel;  // "" if it cannot be told
};
Waiting how_it_waits(int root, const std::vector<ProcMember>& members,
                     const std::string& proc = kProc);

// The last line of the traceback that `tail`, the end of a worker's stderr, ends with, or nearly
// so;
// "" if it does not.
std::string traceback_at_end(std::string_view tail);

}  // namespace muster
