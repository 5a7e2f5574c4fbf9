// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/engine.h"

#include <map>

#include "supervisor/cli/mpi.h"
#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/cli/slurm.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

constexpr int kUsage = 2;
constexpr int64_t kMaxNumber = 0xffff'ffff;

bool says_where(const Options& options) {
  return options.was_given("rdzv_endpoint") || options.was_given("master_addr");
}

bool is_switched_off(const Options& options, const Environment& environment) {
  if (options.standalone) return true;
  // muster inside of a worker: the engine's variables are the outer job's.
  if (lookup(environment, "TORCHELASTIC_RUN_ID")) return true;
  if (!options.was_given("nnodes")) return false;
  return options.max_nodes == 1 || says_where(options);
}

Result<EngineFound> find_engine(const Environment& environment, const std::string& host) {
  // mpirun inside of a Slurm job starts its daemons as a step: that one's variables say nothing
  // about us.
  Result<EngineFound> found = find_open_mpi(environment);
  if (!found || found->engine || !found->warning.empty()) return found;
  found = find_slurm(environment, host);
  if (!found || found->engine || !found->warning.empty()) return found;
  return find_hydra(environment);
}

bool says_who_hosts(const Options& options) {
  Result<std::map<std::string, std::string>> conf = parse_rdzv_conf(options.rdzv_conf);
  return conf && conf->contains("is_host");
}

// A shared file needs no endpoint.
bool meets_in_file(const Options& options) {
  Result<std::map<std::string, std::string>> conf = parse_rdzv_conf(options.rdzv_conf);
  return conf && uses_file_store(*conf);
}

// Where to meet, if the options leave that open: at node 0. Static for who spoke of --master-port,
// else c10d, which is elastic, too.
Result<void> fill_endpoint(const Engine& engine, Options& options) {
  const bool chosen = options.was_given("rdzv_backend");
  const bool fixed = chosen ? options.rdzv_backend == "static"
                            : options.was_given("master_addr") || options.was_given("master_port");
  if (!chosen && !fixed) options.rdzv_backend = "c10d";
  if (fixed && !options.master_port) options.master_port = engine.port;
  const bool needs = fixed || (options.rdzv_backend == "c10d" && !meets_in_file(options));
  if (!needs || says_where(options)) return {};
  if (engine.host.empty()) {
    return Error{kUsage, "muster: " + engine.name + ": " + engine.no_host +
                             "; give --rdzv-endpoint HOST:PORT, HOST being rank 0's\n"};
  }
  if (fixed) {
    options.master_addr = engine.host;
  } else {
    const bool bracket = engine.host.find(':') != std::string::npos;
    options.rdzv_endpoint =
        (bracket ? "[" + engine.host + "]" : engine.host) + ":" + std::to_string(engine.port);
  }
  if (!says_who_hosts(options)) {
    options.rdzv_conf += options.rdzv_conf.empty() ? "" : ",";
    options.rdzv_conf += engine.node == 0 ? "is_host=true" : "is_host=false";
  }
  return {};
}

void fill_identity(const Engine& engine, Options& options) {
  if (!options.was_given("nnodes")) {
    options.min_nodes = engine.nodes;
    options.max_nodes = engine.nodes;
  }
  if (!options.was_given("node_rank") && engine.node < options.max_nodes) {
    options.node_rank = engine.node;
    options.given.insert("node_rank");
  }
  if (!options.was_given("rdzv_id") && !engine.run_id.empty()) {
    options.rdzv_id = engine.run_id;
    options.given.insert("rdzv_id");
  }
}

std::string note_of(const Engine& engine, const Options& options) {
  std::string where = options.rdzv_endpoint;
  if (where.empty()) {
    where = options.master_addr + ":" + std::to_string(options.master_port.value_or(engine.port));
  }
  return engine.name + ": " + std::to_string(engine.nodes) + " nodes, this is node " +
         std::to_string(engine.node) + ", meeting at " + where;
}

// An indexed Job numbers its pods; how many nodes there are and where they meet is in PET_
// variables or the command.
void take_completion_index(Options& options, const Environment& environment, EngineChoice& choice) {
  const auto index = lookup_number(environment, "JOB_COMPLETION_INDEX");
  if (!index || options.max_nodes < 2 || options.standalone || options.was_given("node_rank")) {
    return;
  }
  if (*index >= options.max_nodes) return;
  options.node_rank = static_cast<int>(*index);
  options.given.insert("node_rank");
  choice.notes.push_back("Kubernetes Job: this is node " + std::to_string(*index) + " of " +
                         std::to_string(options.max_nodes) + " (JOB_COMPLETION_INDEX)");
}

}  // namespace

std::optional<int64_t> lookup_number(const Environment& environment, std::string_view name) {
  const std::optional<std::string> text = lookup(environment, name);
  if (!text) return std::nullopt;
  const std::optional<int64_t> number = parse_int(*text);
  if (!number || *number < 0 || *number > kMaxNumber) return std::nullopt;
  return number;
}

Result<EngineChoice> take_engine(Options& options, const Environment& environment,
                                 const std::string& host) {
  EngineChoice choice;
  if (!is_switched_off(options, environment)) {
    Result<EngineFound> found = find_engine(environment, host);
    if (!found) return found.error();
    if (!found->warning.empty()) choice.warnings.push_back(found->warning);
    if (found->engine) {
      Result<void> filled = fill_endpoint(*found->engine, options);
      if (!filled) return filled.error();
      fill_identity(*found->engine, options);
      choice.notes.push_back(note_of(*found->engine, options));
      return choice;
    }
  }
  take_completion_index(options, environment, choice);
  return choice;
}

}  // namespace muster
