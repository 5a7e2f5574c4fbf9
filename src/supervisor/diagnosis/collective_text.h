// SPDX-License-Identifier: Apache-2.0
// The words of collectives.h.
#pragma once

#include <string>
#include <vector>

#include "supervisor/diagnosis/communicator_groups.h"

namespace muster {

// "rank 3", "ranks 0-2, 5"; of very many the first.
std::string ranks_words(const std::vector<int>& ranks);

// "850 ms", "3.2 s", "61 s", "12 min", "3 h".
std::string wait_words(int64_t microseconds);

// "4 B", "4.2 MB".
std::string size_words(int64_t bytes);

int64_t bytes_of(const RankCall& call);  // -1: it has none

// `all_reduce #128`, `barrier #4 of "dp"`; for a message "send #3".
std::string call_words(const RankCall& call, const RankCommunicator& communicator);
// The same with " (4.2 MB, float32)".
std::string sized_call_words(const RankCall& call, const RankCommunicator& communicator);
// And with all in which two ranks may differ: " (root 0, 1 kB uint8)", " (sum, 4 B int32)".
std::string full_call_words(const RankCall& call, const Group& group);

// What a rank does now, to follow its name: "has died", "is in all_reduce #7 since 61 s", "is in no
// operation; its last, barrier #3, ended 61 s ago". `idle`: it waits for nobody that we know of.
struct Whereabouts {
  std::string text;
  bool idle = false;
  bool gone = false;
};
Whereabouts whereabouts(const KnownWorld& world, int rank);

// What a rank has been in for the longest time, or, if it is in nothing, what ended last; null if
// there is nothing.
LatestCall latest_call(const RankOperations& operations);

void fill_operation(event::CollectiveFinding& finding, const RankCall& call,
                    const RankCommunicator& communicator);

}  // namespace muster
