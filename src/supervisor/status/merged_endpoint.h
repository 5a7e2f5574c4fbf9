// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// GET /api/v1/merged: lines of several logs, of all nodes, by time.
void handle_merged(StatusContext& context, StatusCall call);

}  // namespace muster
