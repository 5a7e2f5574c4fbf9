// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "supervisor/job/event.h"

namespace muster {

// Who is to blame for the end of an attempt: one decision over what is known of all ranks, those of
// other nodes too. Pure.

// How the ranks of an attempt ended.
struct AttemptEnds {
  // Of ranks that ended by themselves, in the order of their ends.
  std::vector<event::FailureFound> failures;
  // Of ranks that still ran when all were stopped, with what they had shown by then; nothing more
  // than who it was if `kind` is empty.
  std::vector<event::FailureFound> stopped;
  int still_running = 0;  // how many those were, also if `stopped` lacks some
  // Ranks that had ended with 0 before anybody was stopped, sorted.
  std::vector<int> finished;
};

// The root cause is the first of `independent`; that is empty only if nothing failed.
struct Causes {
  std::vector<event::FailureFound> independent;  // first first
  std::vector<event::FailureFound> victims;      // that ended by what others did, first first
};

// - Whoever shows a failure of his own is an independent cause.
// - A victim points to the ranks that it blames, and through other victims to those that they
//   blame. Whoever is blamed counts from the time of the first victim that does so: a process that
//   ends slowly, with a core dump or in its destructors, is outlived by none of its peers.
// - A blamed rank that was stopped before it had ended is the cause by what it had shown, or else
//   `hung` if the victim had waited for it; one that had ended with 0 has `finished_early`.
// - Victims that blame nobody: whoever has shown a failure before he was stopped is the cause;
// then,
//   where they waited for all ranks, one that had finished, or the only one that did not give up
//   (also if all others waited for keys);
//   then the first victim.
Causes find_causes(AttemptEnds ends);

// Who gave up waiting without saying for whom blames the ranks that never came to the operation, if
// the workers' pages tell.
void blame_the_missing(std::vector<event::FailureFound>& failures,
                       const event::CollectivesFound& collectives);

// The ranks that the failures blame, sorted: whose ends have to be known.
std::vector<int> blamed_ranks(const std::vector<event::FailureFound>& failures);

// True if the failure may well be what another rank's failure has done to this one: a connection to
// it broke, a wait for it ended without it.
bool shows_victim(const event::FailureFound& failure);

// Why a victim ended, for a list of ranks: "waited for rank 3, exited with code 1".
std::string victim_text(const event::FailureFound& victim);

// Ranks that one failure can blame; more are left out.
inline constexpr size_t kMaxBlamed = 64;

}  // namespace muster
