// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// GET /api/v1/download: logs of all nodes as one .tar.gz, made while it is sent.
void handle_download(StatusContext& context, StatusCall call);

}  // namespace muster
