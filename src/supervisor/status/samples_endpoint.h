// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// GET /api/v1/samples: what is measured now, or with ?history=1 the whole run's, thinned;
// ?ranks=0-7 and ?limit= (of samples).
void handle_samples(StatusContext& context, StatusCall call);

}  // namespace muster
