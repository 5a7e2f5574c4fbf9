// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/worker_environment.h"

#include "nccl/report/worker_page.h"
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

// For the day on which it hangs or crashes, unless the user has decided otherwise: a Python that is
// ended by SIGABRT or a fault tells where all its threads are, and PyTorch's record of the last
// collectives goes where the logs are.
void set_for_hangs(Environment& whole, const AttemptFiles& files) {
  constexpr const char* kFaultHandler = "PYTHONFAULTHANDLER";
  if (!lookup(whole, kFaultHandler)) set_variable(whole, kFaultHandler, "1");
  constexpr const char* kRecording = "TORCH_FR_DUMP_TEMP_FILE";  // from PyTorch 2.9 on
  constexpr const char* kOlderRecording = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE";
  if (files.recording.empty() || lookup(whole, kRecording) || lookup(whole, kOlderRecording)) {
    return;
  }
  set_variable(whole, kRecording, files.recording);
  set_variable(whole, kOlderRecording, files.recording);
  constexpr const char* kPipe = "TORCH_FR_DEBUG_INFO_PIPE_FILE";  // beside NCCL
  constexpr const char* kNcclPipe = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
  if (!files.recording_pipe || lookup(whole, kPipe) || lookup(whole, kNcclPipe)) return;
  set_variable(whole, kPipe, files.recording);
  set_variable(whole, kNcclPipe, files.recording);
}

}  // namespace

Result<Environment> worker_environment(const LaunchPlan& plan, int local_rank,
                                       const std::optional<std::string>& devices) {
  const Options& options = plan.options;
  bool alone = options.virtual_local_rank;
  std::string rank = std::to_string(local_rank);
  Environment own = {
      "LOCAL_RANK=" + (alone ? "0" : rank),
      "ROLE_NAME=" + options.role,
      "LOCAL_WORLD_SIZE=" + std::to_string(plan.workers.size()),
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
                            const Assignment& assignment, const AttemptFiles& files) {
  Environment whole = plan.inherited;
  auto set_line = [&whole](const std::string& line) {
    size_t equals = line.find('=');
    set_variable(whole, line.substr(0, equals), line.substr(equals + 1));
  };
  for (const std::string& line : worker.environment)
    set_line(line);
  auto set_number = [&whole](std::string_view name, int value) {
    set_variable(whole, name, std::to_string(value));
  };
  set_number("RANK", assignment.first_rank + worker.local_rank);
  set_number("WORLD_SIZE", assignment.world_size);
  set_number("GROUP_RANK", assignment.node);
  set_number("GROUP_WORLD_SIZE", assignment.node_count);
  set_number("ROLE_RANK", assignment.role_first_rank + worker.local_rank);
  set_number("ROLE_WORLD_SIZE", assignment.role_world_size);
  set_variable(whole, "MASTER_ADDR", assignment.master_addr);
  set_number("MASTER_PORT", assignment.master_port);
  set_number("TORCHELASTIC_RESTART_COUNT", assignment.restart_count);
  set_variable(whole, "TORCHELASTIC_ERROR_FILE", files.error_file);
  if (!files.timer_file.empty()) set_variable(whole, "TORCHELASTIC_TIMER_FILE", files.timer_file);
  set_for_hangs(whole, files);
  // One that is inherited is our own, where a worker of another muster has started us.
  auto set_own = [&whole](std::string_view name, const std::string& path) {
    if (!path.empty() || lookup(whole, name)) set_variable(whole, name, path);
  };
  set_own(worker_page::kVariable, files.page);
  // Programs write into it without asking whether it is there.
  set_variable(whole, kProgressVariable, files.progress.empty() ? "/dev/null" : files.progress);
  return whole;
}

}  // namespace muster
