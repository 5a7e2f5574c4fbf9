// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster {

// Whether a job still goes on, from the signs of life of all its ranks. Pure.
//
// A job stands still when no rank of it has shown a sign of life for the whole time; one rank that
// does anything is enough, whatever the others do, and so is one that ends. One that uses a core
// and does nothing else
// (`spins`) may be caught in a loop or may compute, so it stands still only while as many others
// wait, and never alone. Of a rank about which nothing is known nothing is concluded.

struct RankSigns {
  int rank = 0;
  std::string host;     // "" where the job has one node
  bool running = true;  // else it has ended well
  bool known = false;   // it runs and was looked at lately
  // Without a sign of life when it was looked at last; since its end, which is one.
  int64_t quiet_us = 0;
  bool spins = false;
  char state = 0;
  std::string wait_channel;
  std::string traceback;
};

// A rank that others have been waiting for, by what they say of it: in the store, in an operation
// of a communicator.
struct Accusation {
  std::vector<int> suspects;
  std::vector<int> waiting;
  std::string text;  // "rank 3 never entered all_reduce", "ranks 0-2 wait for the key ..."
};

struct StallFacts {
  int64_t threshold_us = 0;
  std::span<const RankSigns> ranks;     // of the whole job, by rank
  std::vector<Accusation> accusations;  // the surest first
};

struct Stall {
  std::string kind;  // as event::StallFound has it
  std::vector<int> suspects;
  std::vector<int> waiting;
  int64_t quiet_us = 0;  // the job's: of the rank that was the last to show life
  std::string text;
};

// Nothing: it goes on, or may.
std::optional<Stall> find_stall(const StallFacts& facts);

inline constexpr size_t kMaxStallText = 400;

}  // namespace muster
