// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "supervisor/browse/log_page.h"
#include "supervisor/status/log_choice.h"
#include "supervisor/status/status_context.h"

namespace muster {

// GET /api/v1/logs/{attempt}/{rank}/{stream}: a log's bytes, or a page of its lines.
void handle_log(StatusContext& context, StatusCall call);

// The page that offset=, line=, time=, tail= or before= ask for. Nothing: none of them is there.
// The error's code is an HTTP status.
Result<std::optional<LogQuery>> log_query(const HttpServerRequest& request);

// Answers for a log that is not on this machine: passes the request on to its node, or says where
// the log is. False: it is here, and nothing was answered.
bool answer_elsewhere(StatusContext& context, StatusCall& call, const ChosenLog& log);

}  // namespace muster
