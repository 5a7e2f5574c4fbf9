// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "supervisor/job/event.h"

namespace muster {

// Who wanted the job's end, by the sender of the signal: "stopped_by_scheduler" (a batch system, a
// container's runtime, the service manager) or "stopped_by_user".
std::string_view kind_of_stop(const event::SignalReceived& signal);

}  // namespace muster
