// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

// The limit on open descriptors of this process (RLIMIT_NOFILE).
struct FdLimit {
  uint64_t inherited = 0;  // soft limit before raise_fd_limit(); workers get it back,
                           // since programs that use select() suffer from a huge one
  uint64_t now = 0;        // soft limit in force
  uint64_t hard = 0;
};

// Raises the soft limit to the hard one. Called once, early. Never fails: the result says what is
// in force.
FdLimit raise_fd_limit();

// Descriptors that this process may have with so many workers: what it opens itself, and at most,
// with the connections of the workers to its store.
struct DescriptorNeed {
  uint64_t own = 0;
  uint64_t most = 0;
};
DescriptorNeed descriptors_for(int workers);

// Has the kernel's table of descriptors grow now, while no other thread shares it: later each
// doubling waits for all processors (an RCU grace period), some 10 ms in the middle of a launch.
void make_room_for_descriptors(const FdLimit& limit, int workers);

// A line that says that `workers` workers need more descriptors than `limit` allows and what to do,
// or nothing when it is enough.
std::optional<std::string> fd_limit_too_low(const FdLimit& limit, int workers);

}  // namespace muster
