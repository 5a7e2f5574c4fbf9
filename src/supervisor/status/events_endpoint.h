// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// GET /api/v1/events: a stream of changes, or the events themselves, one a line.
void handle_events(StatusContext& context, StatusCall call);

}  // namespace muster
