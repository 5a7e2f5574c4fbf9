// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/commands.h"

#include <signal.h>

namespace muster {

int run_command(const CommandOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // whoever writes hears of it by EPIPE
  switch (options.command) {
    case Command::kStatus:
      return options.watch ? run_watch(options) : run_status(options);
    case Command::kLogs:
      return run_logs(options);
    case Command::kDump:
      return run_dump(options);
    case Command::kView:
      break;
  }
  return run_view(options);
}

}  // namespace muster
