// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>
#include <memory>
#include <set>

#include "supervisor/cli/device_probe.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

// CPU numbers above this are no CPU numbers.
constexpr int64_t kMaxCpu = 1 << 16;

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::vector<int> affinity_mask() {
  // The kernel refuses a mask smaller than its own: grow until it fits.
  for (int size = 1024; size <= kMaxCpu; size *= 2) {
    auto* mask = CPU_ALLOC(size);
    std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> owner(mask, [](cpu_set_t* m) { CPU_FREE(m); });
    size_t bytes = CPU_ALLOC_SIZE(size);
    if (mask == nullptr || sched_getaffinity(0, bytes, mask) != 0) continue;
    std::vector<int> cpus;
    for (int cpu = 0; cpu < size; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, mask)) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {0};
}

double share_of(const std::optional<std::string>& quota, const std::optional<std::string>& period) {
  if (!quota || !period) return 0;
  std::optional<double> granted = parse_double(*quota);
  std::optional<double> of = parse_double(*period);
  if (!granted || !of || *granted <= 0 || *of <= 0) return 0;
  return *granted / *of;
}

// cpu.max is "max 100000" or "150000 100000".
double share_v2(const std::string& directory) {
  std::optional<std::string> line = read_line(directory + "/cpu.max");
  if (!line) return 0;
  std::vector<std::string> words = split(*line, ' ');
  return words.size() == 2 ? share_of(words[0], words[1]) : 0;
}

double share_v1(const std::string& directory) {
  return share_of(read_line(directory + "/cpu.cfs_quota_us"),
                  read_line(directory + "/cpu.cfs_period_us"));
}

// The smallest share on the way from `mount`/`path` up to `mount`.
double smallest_share(const std::string& mount, std::string path,
                      double (*share)(const std::string&)) {
  double smallest = 0;
  for (;;) {
    double here = share(mount + path);
    if (here > 0 && (smallest == 0 || here < smallest)) smallest = here;
    if (path.empty()) return smallest;
    path.erase(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

}  // namespace

std::optional<std::string> read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

double cgroup_cpu_share(const std::string& proc_root, const std::string& sys_root) {
  std::ifstream file(proc_root + "/self/cgroup");
  std::string mount = sys_root + "/fs/cgroup";
  double smallest = 0;
  for (std::string line; std::getline(file, line);) {
    // "0::/path" for v2, "4:cpu,cpuacct:/path" for v1.
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    double share = 0;
    std::vector<std::string> names = split(controllers, ',');
    if (controllers.empty()) {
      share = smallest_share(mount, path, share_v2);
    } else if (std::find(names.begin(), names.end(), "cpu") != names.end()) {
      share = smallest_share(mount + "/" + controllers, path, share_v1);
      if (share == 0) share = smallest_share(mount + "/cpu", path, share_v1);
    }
    if (share > 0 && (smallest == 0 || share < smallest)) smallest = share;
  }
  return smallest;
}

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::set<int> cpus;
  if (trim(text).empty()) return std::vector<int>{};
  for (const std::string& part : split(trim(text), ',')) {
    size_t dash = part.find('-');
    std::optional<int64_t> first = parse_int(part.substr(0, dash));
    std::optional<int64_t> last =
        dash == std::string::npos ? first : parse_int(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > kMaxCpu) return std::nullopt;
    for (int64_t cpu = *first; cpu <= *last; ++cpu)
      cpus.insert(static_cast<int>(cpu));
  }
  return std::vector<int>(cpus.begin(), cpus.end());
}

int count_cores(const std::string& sys_root, const std::vector<int>& cpus) {
  std::set<int> cores;
  for (int cpu : cpus) {
    std::optional<std::string> line =
        read_line(sys_root + "/devices/system/cpu/cpu" + std::to_string(cpu) +
                  "/topology/thread_siblings_list");
    std::optional<std::vector<int>> siblings;
    if (line) siblings = parse_cpu_list(*line);
    cores.insert(siblings && !siblings->empty() ? siblings->front() : cpu);
  }
  return static_cast<int>(cores.size());
}

Machine this_machine() {
  Machine machine;
  machine.host = host_name();
  machine.allowed_cpus = affinity_mask();
  machine.cpu_share = cgroup_cpu_share("/proc", "/sys");
  machine.nvidia = [] { return find_nvidia_gpus("/proc"); };
  machine.xpus = [] { return find_xpus("/sys"); };
  return machine;
}

}  // namespace muster
