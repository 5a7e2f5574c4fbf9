// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "supervisor/status/status_context.h"

namespace muster {

// What is answered at once from the job's state, and what changes the job.

void handle_healthz(StatusContext& context, StatusCall call);
void handle_job(StatusContext& context, StatusCall call);
void handle_nodes(StatusContext& context, StatusCall call);
void handle_attempts(StatusContext& context, StatusCall call);
void handle_ranks(StatusContext& context, StatusCall call);     // attempt=, ranks=
void handle_failures(StatusContext& context, StatusCall call);  // of all attempts, newest first
void handle_stop(StatusContext& context, StatusCall call);      // kill=1
void handle_dump(StatusContext& context, StatusCall call);
void handle_restart(StatusContext& context, StatusCall call);

}  // namespace muster
