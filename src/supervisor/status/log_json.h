// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "supervisor/browse/log_page.h"
#include "supervisor/status/json_out.h"
#include "supervisor/status/log_choice.h"

namespace muster {

// The Page of docs/api.md. `growing`: its worker may still write.
void write_page(JsonOut& out, const ChosenLog& log, const LogPage& page, bool growing);

// [offset, number, time_us, size, ended, "text"], and what was skipped of it if anything was
void write_line(JsonOut& out, const LogLine& line);

// Whether somebody may still write to it: its worker, or the pipe that it has left.
bool may_grow(const JobSource& source, const ChosenLog& log);

}  // namespace muster
