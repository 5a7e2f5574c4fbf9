// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "loop/result.h"
#include "supervisor/cli/options.h"

namespace muster {

// What a binding is computed from.
struct NumaFacts {
  std::string sys_root = "/sys";
  std::vector<int> allowed;                 // CPUs that muster may use, ascending
  std::vector<std::string> device_address;  // PCI addresses of all visible devices, by index
};

struct CpuBinding {
  std::vector<int> cpus;  // ascending, never empty
  std::string why;        // "NUMA node 1 of device 5"
};

// The CPUs for the worker of device `device` (not kNone). Pure over the sysfs tree below sys_root.
Result<CpuBinding> numa_binding(NumaMode mode, const NumaFacts& facts, int device);

std::string_view numa_mode_name(NumaMode mode);

}  // namespace muster
