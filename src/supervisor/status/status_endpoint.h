// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// GET /status, ?ranks=0-7,12
void handle_status(StatusContext& context, StatusCall call);

// GET /metrics
void handle_metrics(StatusContext& context, StatusCall call);

}  // namespace muster
