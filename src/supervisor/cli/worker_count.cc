// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/worker_count.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "supervisor/cli/device_probe.h"
#include "supervisor/cli/values.h"

namespace muster {
namespace {

constexpr int kUsage = 2;

std::string plural(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

int granted(const Machine& machine, size_t available) {
  int count = std::max(1, static_cast<int>(available));
  if (machine.cpu_share <= 0) return count;
  return std::min(count, std::max(1, static_cast<int>(machine.cpu_share)));
}

Error no_device(const std::string& what, const std::string& why) {
  return Error{kUsage, "muster: --nproc-per-node " + what + ": no such device: " + why + "\n"};
}

// Devices that one process sees: of several MIG instances CUDA shows the first only, unless each
// worker gets its own.
size_t gpu_count(const Options& options, const DeviceList& visible) {
  bool mig = !visible.devices.empty() && visible.devices.front().uuid.starts_with("MIG-");
  return mig && !options.virtual_local_rank ? 1 : visible.devices.size();
}

WorkerCount gpu_workers(const Options& options, const DeviceList& visible) {
  size_t count = gpu_count(options, visible);
  return {static_cast<int>(count), plural(count, "GPU") + " (" + visible.source + ")"};
}

Result<WorkerCount> named_gpus(const Options& options, Accelerators& accelerators) {
  size_t count = options.gpus->size();
  // Only if the machine's GPUs can be counted: others than NVIDIA's may be meant.
  const DeviceList& all = accelerators.all_gpus();
  for (const std::string& device : *options.gpus) {
    std::optional<int64_t> index = parse_int(device);
    if (all.devices.empty() || !index) continue;
    if (*index < static_cast<int64_t>(all.devices.size())) continue;
    return Error{kUsage, "muster: --gpus: there is no GPU " + device + " among the " +
                             plural(all.devices.size(), "GPU") + " here (" + all.source + ")\n"};
  }
  return WorkerCount{static_cast<int>(count), plural(count, "GPU") + " named by --gpus"};
}

}  // namespace

std::optional<std::string> visible_devices(const Options& options, const Environment& environment) {
  if (options.gpus) return join(*options.gpus, ",");
  return lookup(environment, "CUDA_VISIBLE_DEVICES");
}

const DeviceList& Accelerators::all_gpus() {
  if (!all_) all_ = machine_.nvidia();
  return *all_;
}

const DeviceList& Accelerators::xpus() {
  if (!xpus_) xpus_ = machine_.xpus();
  return *xpus_;
}

const DeviceList& Accelerators::visible_gpus() {
  if (visible_) return *visible_;
  const DeviceList& all = all_gpus();
  std::optional<std::string> setting = visible_devices(options_, environment_);
  visible_ = DeviceList{muster::visible_gpus(all.devices, setting), all.source, all.why_none};
  if (!setting) return *visible_;
  std::string name = options_.gpus ? "--gpus " : "CUDA_VISIBLE_DEVICES=";
  visible_->source += " and " + name + *setting;
  if (!all.devices.empty() && visible_->devices.empty()) {
    visible_->why_none =
        name + *setting + " hides the " + plural(all.devices.size(), "GPU") + " that are here";
  }
  return *visible_;
}

WorkerCount usable_cpus(const Machine& machine) {
  size_t allowed = machine.allowed_cpus.size();
  int count = granted(machine, allowed);
  std::string why = plural(allowed, "CPU") + " in the affinity mask";
  if (machine.cpu_share > 0) {
    std::array<char, 32> share{};
    std::snprintf(share.data(), share.size(), "%.3g", machine.cpu_share);
    why += std::string(", of which the cgroup grants ") + share.data();
  }
  return {count, why};
}

int usable_cores(const Machine& machine) {
  int cores = count_cores(machine.sys_root, machine.allowed_cpus);
  return granted(machine, static_cast<size_t>(std::max(0, cores)));
}

Result<WorkerCount> count_workers(const Options& options, const Machine& machine,
                                  Accelerators& accelerators) {
  const std::string& wanted = options.nproc_per_node;
  if (options.gpus) {
    Result<WorkerCount> named = named_gpus(options, accelerators);
    bool counts = !options.was_given("nproc_per_node") || wanted == "gpu" || wanted == "auto";
    if (!named || counts) return named;
  }
  if (std::optional<int64_t> number = parse_int(wanted)) {
    return WorkerCount{static_cast<int>(*number), ""};
  }
  if (wanted == "gpu" || wanted == "auto") {
    const DeviceList& gpus = accelerators.visible_gpus();
    if (!gpus.devices.empty()) return gpu_workers(options, gpus);
    if (wanted == "gpu") return no_device(wanted, gpus.why_none);
  }
  if (wanted == "xpu" || wanted == "auto") {
    const DeviceList& xpus = accelerators.xpus();
    size_t count = xpus.devices.size();
    if (count > 0) {
      return WorkerCount{static_cast<int>(count), plural(count, "XPU") + " (" + xpus.source + ")"};
    }
    if (wanted == "xpu") return no_device(wanted, xpus.why_none);
  }
  WorkerCount cpus = usable_cpus(machine);
  if (wanted == "auto") cpus.why = "no accelerator; " + cpus.why;
  return cpus;
}

}  // namespace muster
