// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "supervisor/cli/failure_policy.h"
#include "supervisor/cli/http_place.h"
#include "supervisor/cli/rendezvous_plan.h"

namespace muster {

enum class NumaMode { kNone, kNode, kSocket, kExclusive, kCoreComplex };
enum class HangAction { kWarn, kDump, kRestart, kFail };
enum class ConsoleMode { kAuto, kRaw, kLines, kPrefix, kNone };

// What the user asked for, as typed values that each passed their own check. Filled by the option
// table (cli/option_table) from the command line and PET_* variables; nothing here is resolved
// against the machine yet (that is the LaunchPlan). Defaults are torchrun's unless
// docs/differences.md says otherwise.
struct Options {
  // Nodes and rendezvous.
  int min_nodes = 1;
  int max_nodes = 1;
  std::string nproc_per_node = "1";
  std::string rdzv_backend = "static";
  std::string rdzv_endpoint;
  std::string rdzv_id = "none";
  std::string rdzv_conf;  // repeats are joined with ','
  bool standalone = false;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  std::optional<int> master_port;
  std::string local_addr;
  OnNodeSignal on_node_signal = OnNodeSignal::kStopJob;
  std::chrono::milliseconds exit_barrier_timeout{0};
  std::chrono::milliseconds grow_every{0};
  bool store_allow = false;
  std::string token_file;

  // The program.
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  std::string script;
  std::vector<std::string> script_args;
  std::string role = "default";
  std::string start_method = "spawn";

  // Devices and CPUs.
  std::optional<std::vector<std::string>> gpus;  // --gpus 2,4,7
  bool virtual_local_rank = false;
  NumaMode numa_binding = NumaMode::kNone;
  std::string omp_threads;  // "", "auto" or a number

  // Failure and stopping.
  int max_restarts = 0;
  bool restart_always = false;
  std::string failure_rules;
  FailurePolicy failure_policy;
  SameFailureLimit same_failure_limit{3, std::chrono::minutes(10)};
  RestartBackoff restart_backoff{std::chrono::seconds(1), std::chrono::seconds(60)};
  std::string on_failure;  // a command for the shell, "" for none
  double monitor_interval = 0.1;
  std::vector<std::string> signals_to_handle = {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"};
  std::chrono::seconds shutdown_timeout{30};
  std::chrono::milliseconds hang_timeout{300'000};  // 0: never
  HangAction hang_action = HangAction::kDump;

  // Logs and console.
  std::string log_dir;  // empty: the default folder
  std::string redirects = "0";
  std::string tee = "0";
  std::string log_line_prefix_template;
  std::string local_ranks_filter;
  std::string ranks_filter;
  std::optional<std::vector<std::string>> duplicate_stdout_filters;
  std::optional<std::vector<std::string>> duplicate_stderr_filters;
  std::string logs_specs;
  ConsoleMode console = ConsoleMode::kAuto;
  bool fold = false;
  int64_t log_limit = int64_t{512} << 20;  // bytes kept per stream (1 GiB a rank), 0 = no bound
  std::optional<int> stdin_rank = 0;       // local rank that gets stdin; none = nobody
  bool pty = false;
  int keep_runs = 20;  // newest runs kept in the default folder
  std::string summary_file;
  std::string event_log_handler = "null";
  HttpPlace http;

  bool dry_run = false;

  // Destination names (nproc_per_node, ...) that the command line or a PET_ variable set: what the
  // "has no effect" warnings are made from.
  std::set<std::string> given;

  bool was_given(const std::string& destination) const { return given.contains(destination); }
};

}  // namespace muster
