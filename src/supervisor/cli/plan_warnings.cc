// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/plan_warnings.h"

#include <algorithm>
#include <initializer_list>

#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/cli/rendezvous_planner.h"
#include "supervisor/cli/stream_map.h"

namespace muster {
namespace {

class Warnings {
 public:
  Warnings(const Options& options, std::vector<std::string>& lines)
      : options_(options), lines_(lines) {}

  // Each option of `destinations` that was given has no effect, for one reason.
  void no_effect(std::initializer_list<const char*> destinations, const std::string& why) {
    for (const char* destination : destinations) {
      if (!options_.was_given(destination)) continue;
      std::string name = destination;
      std::replace(name.begin(), name.end(), '_', '-');
      lines_.push_back("--" + name + " has no effect: " + why);
    }
  }

  void say(std::string line) { lines_.push_back(std::move(line)); }

 private:
  const Options& options_;
  std::vector<std::string>& lines_;
};

void warn_one_node(const Options& options, Meeting meeting, Warnings& warnings) {
  switch (meeting) {
    case Meeting::kStandalone:
      warnings.no_effect(
          {"rdzv_backend", "rdzv_endpoint", "rdzv_id", "master_addr", "master_port", "node_rank"},
          "--standalone chooses for itself");
      if (options.max_nodes > 1) warnings.no_effect({"nnodes"}, "--standalone is one node");
      break;
    case Meeting::kLocal:
      warnings.no_effect({"master_addr"},
                         "without --master-port the workers of one node meet at " +
                             (options.local_addr.empty() ? "127.0.0.1" : options.local_addr));
      warnings.no_effect({"node_rank"}, "there is one node");
      break;
    case Meeting::kStatic:
      if (!options.rdzv_endpoint.empty()) {
        warnings.no_effect({"master_addr", "master_port"}, "--rdzv-endpoint says where to meet");
      }
      warnings.no_effect({"local_addr"}, "the static backend uses the endpoint's address");
      break;
    case Meeting::kDynamic:
    case Meeting::kFile:
    case Meeting::kEtcdV2:
    case Meeting::kEtcdV3:
      warnings.no_effect({"master_addr", "master_port", "node_rank"},
                         "only the static backend uses it");
      warnings.no_effect({"rdzv_endpoint"}, "one node need not meet others");
      break;
  }
  warnings.no_effect({"rdzv_conf", "on_node_signal", "grow_every", "exit_barrier_timeout",
                      "token_file", "store_allow"},
                     "one node need not meet others");
}

void warn_several_nodes(const Options& options, const RendezvousPlan& rendezvous,
                        Warnings& warnings) {
  const bool elected =
      rendezvous.meeting == Meeting::kEtcdV2 || rendezvous.meeting == Meeting::kEtcdV3;
  if (rendezvous.meeting == Meeting::kStatic) {
    if (!options.rdzv_endpoint.empty()) {
      warnings.no_effect({"master_addr", "master_port"}, "--rdzv-endpoint says where to meet");
    }
    if (options.min_nodes < options.max_nodes) {
      warnings.say("--nnodes " + std::to_string(options.min_nodes) + ":" +
                   std::to_string(options.max_nodes) + ": the static backend waits for all " +
                   std::to_string(options.max_nodes) + " nodes; --rdzv-backend c10d is elastic");
    }
  } else {
    warnings.no_effect({"master_addr", "master_port"}, "only the static backend uses it");
  }
  if (rendezvous.min_nodes == rendezvous.max_nodes) {
    warnings.no_effect({"grow_every"},
                       "the number of nodes is fixed; --nnodes MIN:MAX lets it grow");
  }
  if (elected && !options.was_given("rdzv_id")) {
    warnings.say("without --rdzv-id this job meets every other job at " +
                 meeting_point(rendezvous) + " that gives none");
  }
  if (rendezvous.meeting != Meeting::kFile && is_loopback_host(rendezvous.endpoint_host)) {
    warnings.say("the nodes meet at " + meeting_point(rendezvous) +
                 ": on other machines that is another place");
  }
}

// Keys that are known, but not to this backend or not here.
void warn_conf(const Options& options, const RendezvousPlan& rendezvous, Warnings& warnings) {
  Result<std::map<std::string, std::string>> conf = parse_rdzv_conf(options.rdzv_conf);
  if (!conf) return;
  for (const std::string& key : unknown_conf_keys(*conf)) {
    std::string near = nearest_conf_key(key);
    warnings.say("--rdzv-conf: no backend knows the key '" + key + "'" +
                 (near.empty() ? "" : " (did you mean " + near + "?)"));
  }
  if (!rendezvous.several_nodes()) return;
  for (const auto& [key, value] : *conf) {
    std::string why = why_conf_key_is_idle(key, rendezvous.meeting);
    if (!why.empty()) warnings.say("--rdzv-conf " + key + " has no effect: " + why);
  }
}

void warn_rendezvous(const Options& options, const RendezvousPlan& rendezvous, Warnings& warnings) {
  if (rendezvous.several_nodes()) {
    warn_several_nodes(options, rendezvous, warnings);
  } else {
    warn_one_node(options, rendezvous.meeting, warnings);
  }
  warn_conf(options, rendezvous, warnings);
}

void warn_program(const Options& options, Warnings& warnings) {
  if (options.run_path) warnings.no_effect({"module", "no_python"}, "--run-path comes first");
  warnings.no_effect({"start_method"}, options.run_path
                                           ? "each worker is a fresh interpreter always"
                                           : "it is about --run-path only");
  warnings.no_effect({"monitor_interval"}, "the end of a worker is noticed at once");
  if (options.max_restarts == 0) {
    warnings.no_effect({"restart_always", "same_failure_limit", "restart_backoff"},
                       "--max-restarts is 0");
  }
}

// Ranks that a map or filter names beyond those that exist.
void warn_rank(const char* option, int highest, int workers, Warnings& warnings) {
  if (highest < workers) return;
  warnings.say(std::string("--") + option + " names rank " + std::to_string(highest) +
               ", but the ranks end at " + std::to_string(workers - 1));
}

void warn_ranks(const Options& options, bool several_nodes, int workers, Warnings& warnings) {
  auto map_highest = [](const std::string& text) {
    Result<StreamMap> map = parse_stream_map(text);
    return map ? map->highest_named() : -1;
  };
  auto filter_highest = [](const std::string& text) {
    Result<RankFilter> filter = parse_rank_filter(text);
    return filter ? filter->highest_named() : -1;
  };
  warn_rank("redirects", map_highest(options.redirects), workers, warnings);
  warn_rank("tee", map_highest(options.tee), workers, warnings);
  warn_rank("local-ranks-filter", filter_highest(options.local_ranks_filter), workers, warnings);
  // How many ranks there are on all nodes is known when they have met.
  if (!several_nodes) {
    warn_rank("ranks-filter", filter_highest(options.ranks_filter), workers, warnings);
  }
  if (options.stdin_rank) warn_rank("stdin-rank", *options.stdin_rank, workers, warnings);
}

bool tees(const Options& options, Stream stream, int workers) {
  Result<StreamMap> map = parse_stream_map(options.tee);
  if (!map) return false;
  for (int rank = 0; rank < workers; ++rank) {
    if (map->for_rank(rank).has(stream)) return true;
  }
  return false;
}

void warn_logs(const Options& options, int workers, Warnings& warnings) {
  if (options.log_dir == "/dev/null") {
    warnings.no_effect(
        {"redirects", "log_limit", "duplicate_stdout_filters", "duplicate_stderr_filters"},
        "--log-dir /dev/null keeps no files");
  } else {
    if (!tees(options, Stream::kStdout, workers)) {
      warnings.no_effect({"duplicate_stdout_filters"}, "--tee takes no worker's stdout");
    }
    if (!tees(options, Stream::kStderr, workers)) {
      warnings.no_effect({"duplicate_stderr_filters"}, "--tee takes no worker's stderr");
    }
  }
  if (!options.log_dir.empty()) {
    warnings.no_effect({"keep_runs"}, "only the default folder is cleared of old runs");
  }
  if (options.event_log_handler == "dynamic_rendezvous") {
    warnings.no_effect({"event_log_handler"}, "what happens to nodes is in events.jsonl");
  }
  if (options.console == ConsoleMode::kRaw || options.console == ConsoleMode::kNone) {
    warnings.no_effect({"fold"}, "--console shows no lines to fold");
  }
}

}  // namespace

std::vector<std::string> options_without_effect(const Options& options,
                                                const RendezvousPlan& rendezvous, int workers) {
  std::vector<std::string> lines;
  Warnings warnings(options, lines);
  warn_rendezvous(options, rendezvous, warnings);
  warn_program(options, warnings);
  warn_ranks(options, rendezvous.several_nodes(), workers, warnings);
  warn_logs(options, workers, warnings);
  return lines;
}

}  // namespace muster
