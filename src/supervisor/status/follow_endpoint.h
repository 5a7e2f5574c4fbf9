// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// GET /api/v1/follow: the last lines of several logs and then what is appended to them, as one
// event stream, whichever nodes have them.
void handle_follow(StatusContext& context, StatusCall call);

}  // namespace muster
