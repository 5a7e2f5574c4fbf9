// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/cli/machine.h"

namespace muster {

// GPUs by NVML, or, where it cannot be loaded, by /proc/driver/nvidia/gpus. Vendors' libraries are
// opened in a short-lived child: a driver that crashes, hangs or starts threads does so there.
DeviceList find_nvidia_gpus(const std::string& proc_root);
DeviceList nvidia_gpus_in_proc(const std::string& proc_root);

// Intel GPUs by Level Zero, or by the drm devices in sysfs.
DeviceList find_xpus(const std::string& sys_root);
DeviceList xpus_in_sysfs(const std::string& sys_root);

// The devices that CUDA shows for CUDA_VISIBLE_DEVICES, in its order: it stops at the first entry
// that names no device, and shows nothing if one is named twice. MIG instances have no PCI address.
std::vector<Device> visible_gpus(const std::vector<Device>& all,
                                 const std::optional<std::string>& visible_devices);

// Runs `probe` in a child and returns what it wrote to the descriptor; nothing if it crashed or
// took longer than `seconds`.
std::optional<std::string> probe_in_child(const std::function<void(int fd)>& probe, int seconds);

}  // namespace muster
