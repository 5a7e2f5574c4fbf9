// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "supervisor/status/row_states.h"

namespace muster {

// The job in one line for people. It names no duration that goes on, so it changes only with the
// state.
std::string job_summary(const JobView& view);

}  // namespace muster
