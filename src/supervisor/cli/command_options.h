// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "supervisor/cli/http_place.h"

namespace muster {

// What may be asked about a run: `muster status`, `muster logs`, `muster dump`, `muster view`.
enum class Command { kStatus, kLogs, kDump, kView };

// What the user asked for, as typed values that each passed their own check. Filled by the command
// table (cli/command_table); nothing here is resolved against the machine yet.
struct CommandOptions {
  Command command = Command::kStatus;
  std::string run;  // a URL, a folder, the beginning of a run's id or folder; "": the newest
  bool json = false;

  // Status.
  bool watch = false;

  // Status and logs.
  std::string ranks;  // "0,3-5", "": all

  // Logs.
  bool follow = false;
  std::string streams;         // "stdout", "stderr", "": both
  std::optional<int> attempt;  // the current one if none is given
  bool all_attempts = false;
  std::optional<int64_t> tail;  // so many lines of each log
  bool tail_all = false;        // all of them, with follow too
  std::string grep;
  bool fixed = false;        // grep is a text, not an expression
  bool ignore_case = false;  // of grep
  int context = 0;
  std::optional<int64_t> since_us;  // unix time
  bool raw = false;
  bool timestamps = false;

  // View.
  HttpPlace http;
  bool open = false;
};

}  // namespace muster
