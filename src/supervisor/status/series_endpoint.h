// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// GET /api/v1/series/{attempt}/{rank}: how far a rank was at which time, by its output.
void handle_series(StatusContext& context, StatusCall call);

}  // namespace muster
