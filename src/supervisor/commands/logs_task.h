// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "supervisor/cli/command_options.h"
#include "supervisor/commands/line_filter.h"
#include "supervisor/commands/line_printer.h"
#include "supervisor/commands/log_lines.h"
#include "supervisor/commands/run_client.h"

namespace muster {

// What the parts of `muster logs` work with. Owned by the command, which outlives them.
struct LogsContext {
  Loop& loop;
  const CommandOptions& options;
  RunClient& client;
  LinePrinter printer;
  LineFilter filter;
};

// One of them at work: it prints, and calls back once when it is done. Dropping it stops it.
class LogsTask {
 public:
  virtual ~LogsTask() = default;
};
using OnLogsDone = std::function<void(Result<void> done)>;

// Logs of one attempt, in the order of their lines' times.
std::unique_ptr<LogsTask> print_history(LogsContext& context, std::vector<LogName> logs,
                                        OnLogsDone on_done);

// Their bytes, one log after the other.
std::unique_ptr<LogsTask> print_raw(LogsContext& context, std::vector<LogName> logs,
                                    OnLogsDone on_done);

// What --grep finds; `attempt` "" is all. `*found` counts the lines.
std::unique_ptr<LogsTask> print_matches(LogsContext& context, const std::string& attempt,
                                        int64_t* found, OnLogsDone on_done);

// The end of the logs of one attempt and what comes, until nothing more will. `start` says where:
// "tail=10", "time=1". Done with an error if the run cannot be asked any more; with the same
// `places` another one then goes on where this one was.
struct FollowPlaces {
  int attempt = 0;
  std::vector<std::pair<std::string, std::string>> streams;  // ranks of each stream, its last id
};
std::unique_ptr<LogsTask> print_following(LogsContext& context, FollowPlaces& places,
                                          const std::string& start, OnLogsDone on_done);

// "/api/v1/logs/0/3/stdout"
std::string log_target(const LogName& log);

// For messages: "rank 3 stdout".
std::string log_title(const LogName& log);

}  // namespace muster
