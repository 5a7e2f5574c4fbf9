// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/worker_environment.h"

#include "supervisor/cli/values.h"

namespace muster {
namespace {

// With a virtual local rank each worker sees one device: its entry of the list, or its number.
Result<std::string> own_device(int local_rank, const std::optional<std::string>& devices) {
  if (!devices) return std::to_string(local_rank);
  std::vector<std::string> entries = split(*devices, ',');
  if (static_cast<size_t>(local_rank) >= entries.size()) {
    return Error{2, "muster: --virtual-local-rank: CUDA_VISIBLE_DEVICES=" + *devices +
                        " has no device for local rank " + std::to_string(local_rank) + "\n"};
  }
  return std::string(trim(entries[static_cast<size_t>(local_rank)]));
}

}  // namespace

Result<Environment> worker_environment(const LaunchPlan& plan, int local_rank, int world,
                                       const std::optional<std::string>& devices) {
  const Options& options = plan.options;
  bool alone = options.virtual_local_rank;
  std::string rank = std::to_string(local_rank);
  std::string size = std::to_string(world);
  Environment own = {
      "LOCAL_RANK=" + (alone ? "0" : rank),
      "RANK=" + rank,
      "GROUP_RANK=0",
      "ROLE_RANK=" + rank,
      "ROLE_NAME=" + options.role,
      "LOCAL_WORLD_SIZE=" + size,
      "WORLD_SIZE=" + size,
      "GROUP_WORLD_SIZE=1",
      "ROLE_WORLD_SIZE=" + size,
      "MASTER_ADDR=" + plan.master_addr,
      "TORCHELASTIC_MAX_RESTARTS=" + std::to_string(options.max_restarts),
      "TORCHELASTIC_RUN_ID=" + plan.run_id,
      std::string("TORCHELASTIC_USE_AGENT_STORE=") + (plan.agent_store ? "True" : "False"),
      "TORCHELASTIC_SIGNALS_TO_HANDLE=" + join(options.signals_to_handle, ","),
  };
  if (!lookup(plan.inherited, "TORCH_NCCL_ASYNC_ERROR_HANDLING")) {
    own.emplace_back("TORCH_NCCL_ASYNC_ERROR_HANDLING=1");
  }
  if (alone) {
    Result<std::string> device = own_device(local_rank, devices);
    if (!device) return device.error();
    own.push_back("CUDA_VISIBLE_DEVICES=" + *device);
  } else if (options.gpus) {
    own.push_back("CUDA_VISIBLE_DEVICES=" + *devices);
  }
  return own;
}

Environment environment_for(const LaunchPlan& plan, const WorkerPlan& worker,
                            const AttemptFacts& facts) {
  Environment whole = plan.inherited;
  auto set_line = [&whole](const std::string& line) {
    size_t equals = line.find('=');
    set_variable(whole, line.substr(0, equals), line.substr(equals + 1));
  };
  for (const std::string& line : worker.environment)
    set_line(line);
  set_variable(whole, "MASTER_PORT", std::to_string(facts.master_port));
  set_variable(whole, "TORCHELASTIC_RESTART_COUNT", std::to_string(facts.attempt));
  set_variable(whole, "TORCHELASTIC_ERROR_FILE", facts.error_file);
  return whole;
}

}  // namespace muster
