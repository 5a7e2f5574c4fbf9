// SPDX-License-Identifier: Apache-2.0
//
// CPU binding by the place of a worker's device, as torchrun's --numa-binding computes it. With n
// for the device's NUMA node and "allowed" for CPUs of a node that are also in our affinity mask:
//
//   node          the allowed CPUs of n.
//   socket        the allowed CPUs of every node that lies in the same package as n; a node lies
//                 where its lowest allowed CPU is.
//   exclusive     the allowed cores of n are dealt out among the devices of n in order, each one an
//                 equal run of them, the first ones one core more if it does not come out even. A
//                 core is known by the lowest CPU of its thread siblings.
//   core-complex  the allowed CPUs of n are grouped by the last-level data cache that they share;
//                 larger groups come first; the devices of n take the groups in turn.
#include "supervisor/cli/numa.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "supervisor/cli/machine.h"
#include "supervisor/cli/ranges.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

using Cpus = std::vector<int>;

// More cache levels than a CPU has.
constexpr int kMaxCaches = 64;

class Sysfs {
 public:
  explicit Sysfs(const NumaFacts& facts) : facts_(facts) {}

  Result<int> node_of(int device) const;
  Result<Cpus> possible_nodes() const;
  Result<Cpus> allowed_of_node(int node) const;
  Result<int> package_of(int cpu) const;
  Result<int> core_of(int cpu) const;
  Result<int> cache_of(int cpu) const;

 private:
  Result<Cpus> list_in(const std::string& path) const;
  Result<int> number_in(const std::string& path) const;
  std::string cpu_path(int cpu) const {
    return facts_.sys_root + "/devices/system/cpu/cpu" + std::to_string(cpu);
  }

  const NumaFacts& facts_;
};

Error unreadable(const std::string& path) {
  return Error{0, path + " cannot be read: the place of the device or its CPUs is not known"};
}

Result<Cpus> Sysfs::list_in(const std::string& path) const {
  std::optional<std::string> line = read_line(path);
  if (!line) return unreadable(path);
  std::optional<Cpus> list = parse_cpu_list(*line);
  if (!list) return unreadable(path);
  return *list;
}

Result<int> Sysfs::number_in(const std::string& path) const {
  std::optional<std::string> line = read_line(path);
  std::optional<int64_t> number = line ? parse_int(*line) : std::nullopt;
  if (!number) return unreadable(path);
  return static_cast<int>(*number);
}

// A negative node means that the firmware does not say: torchrun takes node 0 then.
Result<int> Sysfs::node_of(int device) const {
  const std::string& address = facts_.device_address[static_cast<size_t>(device)];
  if (address.empty()) {
    return Error{0, "the PCI address of device " + std::to_string(device) + " is not known"};
  }
  Result<int> node = number_in(facts_.sys_root + "/bus/pci/devices/" + address + "/numa_node");
  if (node && *node < 0) return 0;
  return node;
}

Result<Cpus> Sysfs::possible_nodes() const {
  return list_in(facts_.sys_root + "/devices/system/node/possible");
}

Result<Cpus> Sysfs::allowed_of_node(int node) const {
  Result<Cpus> cpus =
      list_in(facts_.sys_root + "/devices/system/node/node" + std::to_string(node) + "/cpulist");
  if (!cpus) return cpus;
  Cpus allowed;
  std::set_intersection(cpus->begin(), cpus->end(), facts_.allowed.begin(), facts_.allowed.end(),
                        std::back_inserter(allowed));
  if (!allowed.empty()) return allowed;
  return Error{0, "none of the CPUs of NUMA node " + std::to_string(node) +
                      " is in the affinity mask " + format_ranges(facts_.allowed)};
}

Result<int> Sysfs::package_of(int cpu) const {
  return number_in(cpu_path(cpu) + "/topology/physical_package_id");
}

Result<int> Sysfs::core_of(int cpu) const {
  std::string path = cpu_path(cpu) + "/topology/thread_siblings_list";
  Result<Cpus> siblings = list_in(path);
  if (!siblings) return siblings.error();
  if (siblings->empty()) return unreadable(path);
  return siblings->front();
}

// The lowest CPU that shares the highest-level cache with data in it.
Result<int> Sysfs::cache_of(int cpu) const {
  int64_t highest = -1;
  int key = -1;
  for (int i = 0; i < kMaxCaches; ++i) {
    std::string cache = cpu_path(cpu) + "/cache/index" + std::to_string(i);
    std::optional<std::string> type = read_line(cache + "/type");
    if (!type) break;
    if (*type != "Unified" && *type != "Data") continue;
    Result<int> level = number_in(cache + "/level");
    Result<Cpus> sharing = list_in(cache + "/shared_cpu_list");
    if (!level) return level;
    if (!sharing) return sharing.error();
    if (*level <= highest || sharing->empty()) continue;
    highest = *level;
    key = sharing->front();
  }
  if (key < 0) return unreadable(cpu_path(cpu) + "/cache");
  return key;
}

// The device's place among the devices of its node.
struct Turn {
  int position = 0;
  int devices = 0;
};

Result<Turn> turn_of(const Sysfs& sysfs, const NumaFacts& facts, int device, int node) {
  Turn turn;
  for (int other = 0; other < static_cast<int>(facts.device_address.size()); ++other) {
    Result<int> its_node = sysfs.node_of(other);
    if (!its_node) return its_node.error();
    if (*its_node != node) continue;
    if (other < device) ++turn.position;
    ++turn.devices;
  }
  return turn;
}

// `cpus` by the key that `key_of` gives each.
Result<std::map<int, Cpus>> grouped(const Cpus& cpus, const Sysfs& sysfs,
                                    Result<int> (Sysfs::*key_of)(int) const) {
  std::map<int, Cpus> groups;
  for (int cpu : cpus) {
    Result<int> key = (sysfs.*key_of)(cpu);
    if (!key) return key.error();
    groups[*key].push_back(cpu);
  }
  return groups;
}

Result<CpuBinding> bind_socket(const Sysfs& sysfs, const Cpus& own) {
  Result<int> package = sysfs.package_of(own.front());
  if (!package) return package.error();
  Result<Cpus> nodes = sysfs.possible_nodes();
  if (!nodes) return nodes.error();
  CpuBinding binding{{}, "socket " + std::to_string(*package)};
  for (int node : *nodes) {
    Result<Cpus> cpus = sysfs.allowed_of_node(node);
    if (!cpus) return cpus.error();
    Result<int> its_package = sysfs.package_of(cpus->front());
    if (!its_package) return its_package.error();
    if (*its_package != *package) continue;
    binding.cpus.insert(binding.cpus.end(), cpus->begin(), cpus->end());
  }
  std::sort(binding.cpus.begin(), binding.cpus.end());
  return binding;
}

Result<CpuBinding> bind_exclusive(const Sysfs& sysfs, const Cpus& own, Turn turn) {
  Result<std::map<int, Cpus>> cores = grouped(own, sysfs, &Sysfs::core_of);
  if (!cores) return cores.error();
  int count = static_cast<int>(cores->size());
  int share = count / turn.devices;
  int rest = count % turn.devices;
  if (share < 1) {
    return Error{0, "its NUMA node has " + std::to_string(count) + " cores for " +
                        std::to_string(turn.devices) + " devices: too few for one each"};
  }
  int first = turn.position * share + std::min(turn.position, rest);
  int last = first + share + (turn.position < rest ? 1 : 0);
  CpuBinding binding{{},
                     "cores " + std::to_string(first) + " to " + std::to_string(last - 1) + " of " +
                         std::to_string(count)};
  auto core = std::next(cores->begin(), first);
  for (int i = first; i < last; ++i, ++core) {
    binding.cpus.insert(binding.cpus.end(), core->second.begin(), core->second.end());
  }
  std::sort(binding.cpus.begin(), binding.cpus.end());
  return binding;
}

Result<CpuBinding> bind_core_complex(const Sysfs& sysfs, const Cpus& own, Turn turn) {
  Result<std::map<int, Cpus>> caches = grouped(own, sysfs, &Sysfs::cache_of);
  if (!caches) return caches.error();
  std::vector<Cpus> groups;
  for (auto& [key, cpus] : *caches)
    groups.push_back(cpus);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Cpus& a, const Cpus& b) { return a.size() > b.size(); });
  size_t index = static_cast<size_t>(turn.position) % groups.size();
  return CpuBinding{groups[index], "last-level cache " + std::to_string(index + 1) + " of " +
                                       std::to_string(groups.size())};
}

Result<CpuBinding> bind(NumaMode mode, const NumaFacts& facts, int device) {
  Sysfs sysfs(facts);
  Result<int> node = sysfs.node_of(device);
  if (!node) return node.error();
  Result<Cpus> own = sysfs.allowed_of_node(*node);
  if (!own) return own.error();
  std::string place = "NUMA node " + std::to_string(*node) + " of device " + std::to_string(device);
  if (mode == NumaMode::kNode) return CpuBinding{*own, place};
  Result<Turn> turn = turn_of(sysfs, facts, device, *node);
  if (!turn) return turn.error();
  Result<CpuBinding> binding = mode == NumaMode::kSocket ? bind_socket(sysfs, *own)
                               : mode == NumaMode::kExclusive
                                   ? bind_exclusive(sysfs, *own, *turn)
                                   : bind_core_complex(sysfs, *own, *turn);
  if (binding) binding->why += ", " + place;
  return binding;
}

}  // namespace

std::string_view numa_mode_name(NumaMode mode) {
  switch (mode) {
    case NumaMode::kNode:
      return "node";
    case NumaMode::kSocket:
      return "socket";
    case NumaMode::kExclusive:
      return "exclusive";
    case NumaMode::kCoreComplex:
      return "core-complex";
    case NumaMode::kNone:
      break;
  }
  return "none";
}

Result<CpuBinding> numa_binding(NumaMode mode, const NumaFacts& facts, int device) {
  std::string context = "--numa-binding " + std::string(numa_mode_name(mode)) + ": ";
  if (facts.device_address.empty()) return Error{0, context + "No accelerator available"};
  if (device < 0 || device >= static_cast<int>(facts.device_address.size())) {
    return Error{0, context + "there is no device for local rank " + std::to_string(device) + "; " +
                        std::to_string(facts.device_address.size()) + " visible"};
  }
  Result<CpuBinding> binding = bind(mode, facts, device);
  if (!binding) return Error{0, context + binding.error().message};
  return binding;
}

}  // namespace muster
