// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm.h>

#include <string>

namespace muster::comm::test {

struct SweepTally {
  int64_t operations = 0;
  int64_t wrong = 0;
};

struct SweepOptions {
  std::string shape;        // of the group, for messages
  bool background = false;  // everything once more with OpOptions::async
  bool large = false;       // sizes too that go through in several pieces
};

// Every operation with every type, reduction and some sizes, in place and not, on one group. What
// is wrong is said on stderr, the first few of it.
void sweep(Communicator& group, const SweepOptions& options, SweepTally& tally);

}  // namespace muster::comm::test
