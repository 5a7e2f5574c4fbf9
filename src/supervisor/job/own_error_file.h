// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "supervisor/job/state.h"

namespace muster {

// What muster writes, when the job is over, to the TORCHELASTIC_ERROR_FILE of its own environment,
// for a launcher above it:
//   a worker failed       its error file, with "errorCode" added to the full form; nothing if it
//                         left none or an unreadable one
//   none could be started a message of muster's own
//   a signal stopped it   a message of muster's own
// nullopt: nothing is to be written. `root_error_file` is the text of the root cause's error file,
// "" if there was none.
std::optional<std::string> own_error_file(const JobState& state, const std::string& root_error_file,
                                          std::chrono::system_clock::time_point now);

// The same for a job that never started: one message of muster's own.
std::string own_error_message(std::string message, std::chrono::system_clock::time_point now);

}  // namespace muster
