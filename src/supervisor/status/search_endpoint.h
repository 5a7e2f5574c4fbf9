// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// GET /api/v1/search: lines of logs, of all nodes, as they are found.
void handle_search(StatusContext& context, StatusCall call);

}  // namespace muster
