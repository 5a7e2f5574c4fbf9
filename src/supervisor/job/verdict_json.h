// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "supervisor/job/state.h"

namespace muster {

// What --on-failure is told, one line (docs/events.md): after a failure that another attempt
// follows, or at the job's end.
std::string verdict_json(const JobState& state);

// Whether the event that the state has just taken in makes a verdict: the restart after a failure,
// or the end of a job that failed.
bool makes_verdict(const JobState& state, const EventBody& event);

}  // namespace muster
