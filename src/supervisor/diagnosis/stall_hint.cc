// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/stall_hint.h"

#include <algorithm>
#include <iterator>

namespace muster {

namespace {

constexpr StallHint kHints[] = {
    {"rank_missing",
     "The others wait for it in an operation, or for a key of the store. Its stack says where it "
     "is "
     "instead: often in a branch that only it took."},
    {"spinning",
     "It uses a core and does nothing else: an endless loop, or a lock that is polled. Two looks "
     "at "
     "its stack show the loop."},
    {"all_idle",
     "No rank differs, so they wait for each other, or all for something outside of the job. "
     "Compare their stacks: the outermost frame that is not alike is where they parted."},
    {"stopped",
     "Somebody stopped it with SIGSTOP, or a debugger holds it. `kill -CONT PID` lets it go on."},
    {"in_kernel",
     "It waits in the kernel for a device, and no signal can end it: usually a network file system "
     "whose server is gone, or a failing disk or GPU. The node's kernel log says more."},
    {"after_traceback",
     "Its main thread has failed and another one keeps the process alive. The traceback in its log "
     "is the cause; make its threads daemons, or end it with os._exit()."},
    {"in_teardown",
     "Its work is done and it does not end: an exit handler, a destructor or a thread waits. "
     "Destroy process groups and close data loaders before main() returns."},
};

}  // namespace

std::span<const StallHint> stall_hints() {
  return kHints;
}

std::string_view stall_hint(std::string_view kind) {
  const auto* found = std::find_if(std::begin(kHints), std::end(kHints),
                                   [&](const StallHint& hint) { return hint.kind == kind; });
  return found == std::end(kHints) ? std::string_view() : found->hint;
}

}  // namespace muster
