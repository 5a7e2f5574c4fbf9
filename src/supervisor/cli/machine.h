// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster {

// An accelerator. Either field may be unknown.
struct Device {
  std::string pci;   // "0000:17:00.0"
  std::string uuid;  // "GPU-..."
};

struct DeviceList {
  std::vector<Device> devices;
  std::string source;    // where they were found: "NVML"
  std::string why_none;  // what was tried, if there are none
};

// What the plan needs to know about this machine. The device probes run only when asked for: they
// load vendors' libraries. Tests fill in their own facts and a fake /sys.
struct Machine {
  std::string host;
  std::string sys_root = "/sys";
  std::vector<int> allowed_cpus;  // the affinity mask
  double cpu_share = 0;           // CPUs that the cgroup grants, 0 if it sets no limit
  std::function<DeviceList()> nvidia;
  std::function<DeviceList()> xpus;
};

Machine this_machine();

// The smallest CPU quota of the process's cgroup and those above it (v2 and v1), 0 if none.
double cgroup_cpu_share(const std::string& proc_root, const std::string& sys_root);

// "0-3,8" as in sysfs; nothing if malformed.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// First line of a file, without its newline; nothing if it cannot be read.
std::optional<std::string> read_line(const std::string& path);

// Physical cores among `cpus`, by thread_siblings_list; a CPU of unknown topology is its own.
int count_cores(const std::string& sys_root, const std::vector<int>& cpus);

}  // namespace muster
