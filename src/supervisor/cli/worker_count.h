// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "loop/result.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/machine.h"
#include "supervisor/cli/options.h"

namespace muster {

// CUDA_VISIBLE_DEVICES as the job has it: --gpus, else the environment's.
std::optional<std::string> visible_devices(const Options& options, const Environment& environment);

// Looks at the machine's devices at most once, and only if asked.
class Accelerators {
 public:
  Accelerators(const Options& options, const Machine& machine, const Environment& environment)
      : options_(options), machine_(machine), environment_(environment) {}

  // GPUs that CUDA shows to the workers, in CUDA's order.
  const DeviceList& visible_gpus();
  const DeviceList& all_gpus();
  const DeviceList& xpus();

 private:
  const Options& options_;  // all three are make_plan's arguments, which outlive this
  const Machine& machine_;
  const Environment& environment_;
  std::optional<DeviceList> visible_;
  std::optional<DeviceList> all_;
  std::optional<DeviceList> xpus_;
};

struct WorkerCount {
  int count = 0;
  std::string why;  // "4 GPUs (NVML)", empty for a plain number
};

// --nproc-per-node and --gpus. The error's code is 2.
Result<WorkerCount> count_workers(const Options& options, const Machine& machine,
                                  Accelerators& accelerators);

// CPUs that this process may use: the affinity mask, no more than the cgroup grants.
WorkerCount usable_cpus(const Machine& machine);

// The same in physical cores.
int usable_cores(const Machine& machine);

}  // namespace muster
