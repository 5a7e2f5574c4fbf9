// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/option_setters.h"

#include <csignal>
#include <utility>

#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/cli/stream_map.h"
#include "supervisor/cli/values.h"

namespace muster::setters {
namespace {

constexpr int64_t kMaxInt = 2'147'483'647;
// More processes than a Linux machine can number by default.
constexpr int64_t kMaxWorkers = 32'768;

Result<int> int_between(const std::string& value, int64_t low, int64_t high) {
  std::optional<int64_t> number = parse_int(value);
  if (!number) return Error{0, "expected a whole number"};
  if (*number < low) return Error{0, "must be at least " + std::to_string(low)};
  if (*number > high) return Error{0, "must be at most " + std::to_string(high)};
  return static_cast<int>(*number);
}

Result<void> set_int(int& target, const std::string& value, int64_t low, int64_t high = kMaxInt) {
  Result<int> number = int_between(value, low, high);
  if (!number) return number.error();
  target = *number;
  return {};
}

Result<void> set_duration(std::chrono::milliseconds& target, const std::string& value) {
  std::optional<std::chrono::milliseconds> duration = parse_seconds(value);
  if (!duration) return Error{0, "expected a number of seconds, at most a year"};
  target = *duration;
  return {};
}

template <typename T>
Result<void> set_parsed(T& target, Result<T> parsed) {
  if (!parsed) return parsed.error();
  target = std::move(*parsed);
  return {};
}

Result<void> set_stream_map(std::string& target, const std::string& value) {
  if (Result<StreamMap> map = parse_stream_map(value); !map) return map.error();
  target = value;
  return {};
}

Result<void> set_rank_filter(std::string& target, const std::string& value) {
  if (Result<RankFilter> filter = parse_rank_filter(value); !filter) return filter.error();
  target = value;
  return {};
}

}  // namespace

Result<void> nnodes(Options& options, const std::string& value) {
  Result<NodeCount> count = parse_nnodes(value);
  if (!count) return count.error();
  options.min_nodes = count->min;
  options.max_nodes = count->max;
  return {};
}

Result<void> nproc_per_node(Options& options, const std::string& value) {
  for (std::string_view word : {"auto", "cpu", "gpu", "xpu"}) {
    if (value == word) {
      options.nproc_per_node = value;
      return {};
    }
  }
  if (!parse_int(value)) return Error{0, "expected a number, or auto, cpu, gpu or xpu"};
  Result<int> number = int_between(value, 1, kMaxWorkers);
  if (!number) return number.error();
  options.nproc_per_node = std::to_string(*number);
  return {};
}

Result<void> gpus(Options& options, const std::string& value) {
  Result<std::vector<std::string>> devices = parse_gpus(value);
  if (!devices) return devices.error();
  options.gpus = std::move(*devices);
  return {};
}

Result<void> omp_threads(Options& options, const std::string& value) {
  if (value != "auto") {
    std::optional<int64_t> number = parse_int(value);
    if (!number) return Error{0, "expected a number, or auto"};
    if (*number < 1) return Error{0, "must be at least 1"};
    options.omp_threads = std::to_string(*number);
    return {};
  }
  options.omp_threads = value;
  return {};
}

Result<void> numa_binding(Options& options, const std::string& value) {
  options.numa_binding = value == "node"        ? NumaMode::kNode
                         : value == "socket"    ? NumaMode::kSocket
                         : value == "exclusive" ? NumaMode::kExclusive
                                                : NumaMode::kCoreComplex;
  return {};
}

// The endpoint's own grammar depends on the backend: check_rendezvous() looks at it when all
// options are known.
Result<void> rdzv_endpoint(Options& options, const std::string& value) {
  options.rdzv_endpoint = std::string(trim(value));
  return {};
}

Result<void> rdzv_id(Options& options, const std::string& value) {
  if (value.empty()) {
    return Error{0,
                 "the run id is empty; leave the option out, or give all nodes of a job the same "
                 "one"};
  }
  options.rdzv_id = value;
  return {};
}

Result<void> rdzv_conf(Options& options, const std::string& value) {
  if (Result<std::map<std::string, std::string>> conf = parse_rdzv_conf(value); !conf) {
    return conf.error();
  }
  if (trim(value).empty()) return {};
  if (!options.rdzv_conf.empty()) options.rdzv_conf += ',';
  options.rdzv_conf += value;
  return {};
}

Result<void> node_rank(Options& options, const std::string& value) {
  return set_int(options.node_rank, value, 0);
}

Result<void> master_port(Options& options, const std::string& value) {
  Result<int> port = int_between(value, 0, 65535);
  if (!port) return port.error();
  options.master_port = *port;
  return {};
}

Result<void> on_node_signal(Options& options, const std::string& value) {
  options.on_node_signal = value == "leave" ? OnNodeSignal::kLeave : OnNodeSignal::kStopJob;
  return {};
}

Result<void> exit_barrier_timeout(Options& options, const std::string& value) {
  return set_duration(options.exit_barrier_timeout, value);
}

Result<void> grow_every(Options& options, const std::string& value) {
  return set_duration(options.grow_every, value);
}

Result<void> max_restarts(Options& options, const std::string& value) {
  return set_int(options.max_restarts, value, 0);
}

Result<void> failure_policy(Options& options, const std::string& value) {
  return set_parsed(options.failure_policy, parse_failure_policy(value));
}

Result<void> same_failure_limit(Options& options, const std::string& value) {
  return set_parsed(options.same_failure_limit, parse_same_failure_limit(value));
}

Result<void> restart_backoff(Options& options, const std::string& value) {
  return set_parsed(options.restart_backoff, parse_restart_backoff(value));
}

Result<void> monitor_interval(Options& options, const std::string& value) {
  std::optional<double> seconds = parse_double(value);
  if (!seconds || *seconds <= 0) return Error{0, "expected a number of seconds above 0"};
  options.monitor_interval = *seconds;
  return {};
}

// Names that are unknown are kept: the plan leaves them out with a warning, as torchrun does.
Result<void> signals_to_handle(Options& options, const std::string& value) {
  std::vector<std::string> names;
  for (const std::string& part : split(value, ',')) {
    std::string name(trim(part));
    std::optional<int> number = signal_number(name);
    if (number && (*number == SIGKILL || *number == SIGSTOP)) {
      return Error{0, name + " cannot be handled by any program"};
    }
    names.push_back(std::move(name));
  }
  options.signals_to_handle = std::move(names);
  return {};
}

// "600", "600:restart".
Result<void> hang_timeout(Options& options, const std::string& value) {
  const size_t end = value.find(':');
  const std::string seconds(trim(value.substr(0, end)));
  if (Result<void> set = set_duration(options.hang_timeout, seconds); !set) return set;
  if (end == std::string::npos) return {};
  const std::string action(trim(value.substr(end + 1)));
  for (const auto& [name, chosen] :
       {std::pair("warn", HangAction::kWarn), std::pair("dump", HangAction::kDump),
        std::pair("restart", HangAction::kRestart), std::pair("fail", HangAction::kFail)}) {
    if (action != name) continue;
    options.hang_action = chosen;
    return {};
  }
  return Error{0, "expected SECONDS, or SECONDS: and one of warn, dump, restart, fail"};
}

Result<void> shutdown_timeout(Options& options, const std::string& value) {
  int seconds = 0;
  Result<void> done = set_int(seconds, value, 0);
  if (done) options.shutdown_timeout = std::chrono::seconds(seconds);
  return done;
}

Result<void> redirects(Options& options, const std::string& value) {
  return set_stream_map(options.redirects, value);
}

Result<void> tee(Options& options, const std::string& value) {
  return set_stream_map(options.tee, value);
}

Result<void> local_ranks_filter(Options& options, const std::string& value) {
  return set_rank_filter(options.local_ranks_filter, value);
}

Result<void> ranks_filter(Options& options, const std::string& value) {
  return set_rank_filter(options.ranks_filter, value);
}

Result<void> duplicate_stdout_filters(Options& options, const std::string& value) {
  options.duplicate_stdout_filters = parse_needles(value);
  return {};
}

Result<void> duplicate_stderr_filters(Options& options, const std::string& value) {
  options.duplicate_stderr_filters = parse_needles(value);
  return {};
}

Result<void> console(Options& options, const std::string& value) {
  options.console = value == "raw"      ? ConsoleMode::kRaw
                    : value == "lines"  ? ConsoleMode::kLines
                    : value == "prefix" ? ConsoleMode::kPrefix
                    : value == "none"   ? ConsoleMode::kNone
                                        : ConsoleMode::kAuto;
  return {};
}

Result<void> log_limit(Options& options, const std::string& value) {
  std::optional<int64_t> bytes = parse_size(value);
  if (!bytes) return Error{0, "expected a size such as 512M, 1G or 0 for no limit"};
  options.log_limit = *bytes;
  return {};
}

Result<void> http(Options& options, const std::string& value) {
  Result<HttpPlace> place = parse_http_place(value);
  if (!place) return place.error();
  options.http = *place;
  return {};
}

Result<void> keep_runs(Options& options, const std::string& value) {
  return set_int(options.keep_runs, value, 1);
}

Result<void> stdin_rank(Options& options, const std::string& value) {
  if (value == "none") {
    options.stdin_rank = std::nullopt;
    return {};
  }
  if (!parse_int(value)) return Error{0, "expected a local rank, or none"};
  int rank = 0;
  Result<void> done = set_int(rank, value, 0);
  if (done) options.stdin_rank = rank;
  return done;
}

}  // namespace muster::setters
