// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/slurm.h"

#include "supervisor/cli/hostlist.h"
#include "supervisor/cli/rendezvous_options.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

constexpr int kUsage = 2;
// Step ids from here on are no steps of srun's: the batch script, an interactive shell.
constexpr int64_t kFirstSpecialStep = 0xffff'fff0;
// Neighbouring steps of a job are far apart, so that they do not meet those of the next jobs.
constexpr int64_t kStepStride = 9'973;

std::string text_of(const Environment& environment, std::string_view name) {
  return lookup(environment, name).value_or("");
}

std::string short_name(const std::string& host) {
  return host.substr(0, host.find('.'));
}

// "ec0:10.0.0.7:host,ec1:[fd00::1]:host": where nodes of a cloud are reached.
std::string alias_address(const std::string& aliases, const std::string& node) {
  for (const std::string& entry : split(aliases, ',')) {
    if (!entry.starts_with(node + ":")) continue;
    const std::string rest = entry.substr(node.size() + 1);
    const bool bracket = rest.starts_with('[');
    const std::string address =
        bracket ? rest.substr(0, rest.find(']') + 1) : rest.substr(0, rest.find(':'));
    if (Result<std::string> host = parse_host(address)) return *host;
  }
  return {};
}

// A name that the nodes resolve, unless Slurm gives an address: of a cloud node, or loopback, when
// several slurmd on one machine play the nodes, which then are no names of the network. A loopback
// address alone says little: a node whose own name is 127.0.1.1 in /etc/hosts gets one, too.
std::string address_of(const Environment& environment, const std::string& first,
                       const std::string& host) {
  std::string alias = alias_address(text_of(environment, "SLURM_NODE_ALIASES"), first);
  if (!alias.empty()) return alias;
  const std::string launcher = text_of(environment, "SLURM_LAUNCH_NODE_IPADDR");
  const std::string own = text_of(environment, "SLURMD_NODENAME");
  const bool one_machine = is_loopback_host(launcher) && !own.empty() && own != short_name(host);
  return one_machine ? launcher : first;
}

Error usage(const std::string& message) {
  return Error{kUsage, "muster: " + message + "\n"};
}

std::string step_name(const Environment& environment) {
  return text_of(environment, "SLURM_JOB_ID") + "." + text_of(environment, "SLURM_STEP_ID");
}

Error several_tasks(const std::string& name, int64_t tasks, int64_t nodes) {
  return usage(name + " has " + std::to_string(tasks) + " tasks on " + std::to_string(nodes) +
               " nodes, and each would start its own workers: start muster once a node (srun "
               "--ntasks-per-node=1) and say how many workers with --nproc-per-node");
}

}  // namespace

Result<EngineFound> find_slurm(const Environment& environment, const std::string& host) {
  const auto job = lookup_number(environment, "SLURM_JOB_ID");
  const auto step = lookup_number(environment, "SLURM_STEP_ID");
  const auto nodes = lookup_number(environment, "SLURM_STEP_NUM_NODES");
  const auto tasks = lookup_number(environment, "SLURM_STEP_NUM_TASKS");
  const auto node = lookup_number(environment, "SLURM_NODEID");
  const std::string list = text_of(environment, "SLURM_STEP_NODELIST");
  if (!job || !step || !nodes || !tasks || !node || list.empty()) return EngineFound{};
  if (*step >= kFirstSpecialStep) return EngineFound{};
  const std::string name = "Slurm job " + step_name(environment);
  if (*nodes < 2) {
    if (*tasks < 2) return EngineFound{};
    return EngineFound{{},
                       name + " starts muster " + std::to_string(*tasks) +
                           " times on this node: each is a job of its own (srun "
                           "--ntasks-per-node=1 starts it once)"};
  }
  if (*tasks != *nodes) return several_tasks(name, *tasks, *nodes);
  Result<std::vector<std::string>> hosts = expand_hostlist(list);
  if (!hosts) return usage("SLURM_STEP_NODELIST=" + list + ": " + hosts.error().message);
  if (static_cast<int64_t>(hosts->size()) != *nodes || *node >= *nodes) {
    return usage("SLURM_STEP_NODELIST=" + list + " has " + std::to_string(hosts->size()) +
                 " hosts; SLURM_STEP_NUM_NODES=" + std::to_string(*nodes) +
                 " and SLURM_NODEID=" + std::to_string(*node) + " say otherwise");
  }
  Engine engine;
  engine.name = name;
  engine.nodes = static_cast<int>(*nodes);
  engine.node = static_cast<int>(*node);
  engine.host = address_of(environment, hosts->front(), host);
  engine.port = kFirstEnginePort + static_cast<int>((*job + kStepStride * *step) % kEnginePorts);
  engine.run_id = "slurm-" + step_name(environment);
  // A requeued job has the same ids as before; it must not meet what may be left of itself.
  const auto restarts = lookup_number(environment, "SLURM_RESTART_COUNT");
  if (restarts && *restarts > 0) engine.run_id += "-restart-" + std::to_string(*restarts);
  return EngineFound{engine, {}};
}

}  // namespace muster
