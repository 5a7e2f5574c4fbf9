// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/failure_options.h"

#include "supervisor/cli/option_setters.h"

namespace muster {

namespace s = setters;
using enum OptionGroup;

std::vector<OptionSpec> failure_options() {
  return {
      {.name = "max-restarts",
       .value_name = "N",
       .group = kFailure,
       .torchrun = true,
       .environment = true,
       .default_text = "0",
       .set = s::max_restarts,
       .help = "How often all workers are started again after one of them failed. Scripts see "
               "TORCHELASTIC_RESTART_COUNT and should continue from their checkpoint."},
      {.name = "restart-always",
       .group = kFailure,
       .environment = true,
       .default_text = "off",
       .set = s::flag<&Options::restart_always>,
       .help =
           "Use restarts even for what cannot heal, such as a syntax error or a missing module."},
      {.name = "failure-rules",
       .value_name = "FILE",
       .group = kFailure,
       .environment = true,
       .default_text = "none",
       .completes = Completes::kFile,
       .set = s::non_empty_text<&Options::failure_rules>,
       .help = "JSON with rules of your own for what failures of your programs look like, what "
               "they are called and whether a restart may heal them (docs/failures.md)."},
      {.name = "failure-policy",
       .value_name = "KIND=ACTION,...",
       .group = kFailure,
       .environment = true,
       .set = s::failure_policy,
       .help = "What follows a failure of a kind (docs/failures.md has them; any is every other): "
               "restart uses the budget even if it cannot heal, stop ends the job, "
               "stop-and-exclude-node goes on without the node where it happened."},
      {.name = "same-failure-limit",
       .value_name = "N/M",
       .group = kFailure,
       .environment = true,
       .default_text = "3/10",
       .set = s::same_failure_limit,
       .help = "The same failure N times within M minutes ends the job, whatever is left of "
               "--max-restarts; 0 sets no limit."},
      {.name = "restart-backoff",
       .value_name = "FIRST[:MOST]",
       .group = kFailure,
       .environment = true,
       .default_text = "1:60",
       .set = s::restart_backoff,
       .help = "Seconds before a restart. The first after ten steady minutes comes at once, the "
               "next after FIRST, each further one after twice the time, up to MOST; 0 waits "
               "never."},
      {.name = "on-failure",
       .value_name = "COMMAND",
       .group = kFailure,
       .environment = true,
       .set = s::non_empty_text<&Options::on_failure>,
       .help =
           "Run this in a shell after each failure and when the job ends with one, on the node "
           "where all meet: it gets the verdict as JSON on its standard input (docs/events.md). "
           "It has 30 s, and the job does not wait for it."},
      {.name = "hang-timeout",
       .value_name = "SECONDS[:ACTION]",
       .group = kFailure,
       .environment = true,
       .default_text = "300:dump",
       .set = s::hang_timeout,
       .help =
           "When no rank has shown a sign of life for so long (no line, no step, no GPU in use, "
           "hardly any processor time, bytes or pages), the job is said to stand still, and who "
           "differs. warn does no more; dump saves the stacks of all workers; fail makes it a "
           "failure after that, restart one that a restart may heal. 0 is never."},
      {.name = "shutdown-timeout",
       .value_name = "SECONDS",
       .group = kFailure,
       .torchrun = true,
       .environment = true,
       .default_text = "30",
       .set = s::shutdown_timeout,
       .help = "Time that workers have between SIGTERM and SIGKILL, however the stop came about. "
               "TORCH_ELASTIC_SHUTDOWN_TIMEOUT is its environment form."},
      {.name = "signals-to-handle",
       .value_name = "LIST",
       .group = kFailure,
       .torchrun = true,
       .environment = true,
       .default_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
       .set = s::signals_to_handle,
       .help = "Signals that stop the job: workers get the same signal and --shutdown-timeout."},
      {.name = "monitor-interval",
       .value_name = "SECONDS",
       .group = kFailure,
       .torchrun = true,
       .environment = true,
       .default_text = "0.1",
       .set = s::monitor_interval,
       .help = "Accepted for torchrun's sake: the end of a worker is noticed at once."},
  };
}

}  // namespace muster
