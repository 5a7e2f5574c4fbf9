// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "loop/result.h"
#include "supervisor/cli/options.h"

namespace muster::setters {

// How each option's text becomes a value of Options. All have the signature of OptionSpec::set.

template <auto Member>
Result<void> text(Options& options, const std::string& value) {
  options.*Member = value;
  return {};
}

template <auto Member>
Result<void> non_empty_text(Options& options, const std::string& value) {
  if (value.empty()) return Error{0, "expected a text that is not empty"};
  options.*Member = value;
  return {};
}

// Flags arrive as "true" or "false" whatever words they were given in.
template <auto Member>
Result<void> flag(Options& options, const std::string& value) {
  options.*Member = value == "true";
  return {};
}

Result<void> nnodes(Options& options, const std::string& value);
Result<void> nproc_per_node(Options& options, const std::string& value);
Result<void> gpus(Options& options, const std::string& value);
Result<void> omp_threads(Options& options, const std::string& value);
Result<void> numa_binding(Options& options, const std::string& value);

Result<void> rdzv_endpoint(Options& options, const std::string& value);
Result<void> rdzv_id(Options& options, const std::string& value);
Result<void> rdzv_conf(Options& options, const std::string& value);
Result<void> node_rank(Options& options, const std::string& value);
Result<void> master_port(Options& options, const std::string& value);
Result<void> on_node_signal(Options& options, const std::string& value);
Result<void> exit_barrier_timeout(Options& options, const std::string& value);
Result<void> grow_every(Options& options, const std::string& value);

Result<void> max_restarts(Options& options, const std::string& value);
Result<void> failure_policy(Options& options, const std::string& value);
Result<void> same_failure_limit(Options& options, const std::string& value);
Result<void> restart_backoff(Options& options, const std::string& value);
Result<void> monitor_interval(Options& options, const std::string& value);
Result<void> signals_to_handle(Options& options, const std::string& value);
Result<void> hang_timeout(Options& options, const std::string& value);
Result<void> shutdown_timeout(Options& options, const std::string& value);

Result<void> redirects(Options& options, const std::string& value);
Result<void> tee(Options& options, const std::string& value);
Result<void> local_ranks_filter(Options& options, const std::string& value);
Result<void> ranks_filter(Options& options, const std::string& value);
Result<void> duplicate_stdout_filters(Options& options, const std::string& value);
Result<void> duplicate_stderr_filters(Options& options, const std::string& value);
Result<void> console(Options& options, const std::string& value);
Result<void> log_limit(Options& options, const std::string& value);
Result<void> http(Options& options, const std::string& value);
Result<void> keep_runs(Options& options, const std::string& value);
Result<void> stdin_rank(Options& options, const std::string& value);

}  // namespace muster::setters
