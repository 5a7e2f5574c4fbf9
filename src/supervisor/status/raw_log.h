// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "supervisor/status/log_choice.h"
#include "supervisor/status/status_context.h"

namespace muster {

// Answers with the bytes of a log on this machine, or with the part of them that Range asks for, as
// far as the log goes at the time of the request.
void answer_raw_log(StatusContext& context, std::unique_ptr<HttpExchange> exchange,
                    const ChosenLog& log);

}  // namespace muster
