// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/job/state.h"

namespace muster {

// What torchrun's event lines say beyond a JobState.
struct TorchelasticFacts {
  std::string role = "default";
  std::string rdzv_backend = "c10d";
};

// --event-log-handler console: the JSON lines that torchrun would print for `event`, for programs
// that read them. `after` is the state with the event applied. Most events give none. Deliberately
// different: the AGENT is FAILED when the job failed, and timestamps are real.
std::vector<std::string> torchelastic_events(const JobState& after, const Event& event,
                                             const TorchelasticFacts& facts = {});

}  // namespace muster
