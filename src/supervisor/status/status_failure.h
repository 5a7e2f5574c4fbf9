// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/json_out.h"
#include "supervisor/status/row_states.h"
#include "supervisor/status/status_ranks.h"

namespace muster {

// The parts of /status about what went wrong, used by status_json.cc.

// "failure": the root cause of the current attempt, or of the last that failed, or null.
void write_status_failure(JsonOut& out, const JobView& view, const StatusLimits& limits);

// "saved" and "saved_left_out": where stacks and other evidence of an attempt's workers lie.
void write_status_saved(JsonOut& out, const AttemptState* attempt, const StatusLimits& limits);

}  // namespace muster
