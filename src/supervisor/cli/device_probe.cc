// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/device_probe.h"

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "supervisor/cli/values.h"
#include "supervisor/workers/own_child.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr int kProbeSeconds = 10;
constexpr Milliseconds kLastWait{1'000};  // for a probe to be gone
// More devices than a node has.
constexpr unsigned kMaxDevices = 1024;

// What NVML's nvmlPciInfo_t looks like since nvmlDeviceGetPciInfo_v3.
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    ssize_t done = write(fd, text.data() + at, text.size() - at);
    if (done <= 0) return;
    at += static_cast<size_t>(done);
  }
}

// One line "pci uuid" per device, then "ok".
void probe_nvml(int fd) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  auto init = symbol<int (*)()>(library, "nvmlInit_v2");
  auto get_count = symbol<int (*)(unsigned*)>(library, "nvmlDeviceGetCount_v2");
  auto get_device = symbol<int (*)(unsigned, void**)>(library, "nvmlDeviceGetHandleByIndex_v2");
  auto get_pci = symbol<int (*)(void*, NvmlPciInfo*)>(library, "nvmlDeviceGetPciInfo_v3");
  auto get_uuid = symbol<int (*)(void*, char*, unsigned)>(library, "nvmlDeviceGetUUID");
  unsigned count = 0;
  if (init == nullptr || get_count == nullptr || get_device == nullptr) return;
  if (init() != 0 || get_count(&count) != 0) return;
  std::string lines;
  for (unsigned i = 0; i < std::min(count, kMaxDevices); ++i) {
    void* device = nullptr;
    NvmlPciInfo pci{};
    std::array<char, 96> uuid{};
    if (get_device(i, &device) != 0) continue;
    std::array<char, 32> address{};
    if (get_pci != nullptr && get_pci(device, &pci) == 0) {
      std::snprintf(address.data(), address.size(), "%04x:%02x:%02x.0", pci.domain, pci.bus,
                    pci.device);
    }
    if (get_uuid != nullptr) get_uuid(device, uuid.data(), uuid.size() - 1);
    lines += std::string(address.data()) + " " + uuid.data() + "\n";
  }
  write_all(fd, lines + "ok\n");
}

// A line per device without address, then "ok". ZE_INIT_FLAG_GPU_ONLY is 1.
void probe_level_zero(int fd) {
  void* library = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  auto init = symbol<int (*)(uint32_t)>(library, "zeInit");
  auto get_drivers = symbol<int (*)(uint32_t*, void**)>(library, "zeDriverGet");
  auto get_devices = symbol<int (*)(void*, uint32_t*, void**)>(library, "zeDeviceGet");
  if (init == nullptr || get_drivers == nullptr || get_devices == nullptr) return;
  uint32_t drivers = 0;
  if (init(1) != 0 || get_drivers(&drivers, nullptr) != 0) return;
  std::vector<void*> handles(std::min<uint32_t>(drivers, kMaxDevices));
  drivers = static_cast<uint32_t>(handles.size());
  if (drivers > 0 && get_drivers(&drivers, handles.data()) != 0) return;
  std::string lines;
  for (void* driver : handles) {
    uint32_t count = 0;
    if (get_devices(driver, &count, nullptr) != 0) continue;
    for (uint32_t i = 0; i < std::min<uint32_t>(count, kMaxDevices); ++i)
      lines += " \n";
  }
  write_all(fd, lines + "ok\n");
}

// The devices that a probe wrote; nothing if it did not get to its end.
std::optional<std::vector<Device>> devices_of(const std::optional<std::string>& text) {
  if (!text || !text->ends_with("ok\n")) return std::nullopt;
  std::vector<Device> devices;
  for (const std::string& line : split(*text, '\n')) {
    size_t blank = line.find(' ');
    if (blank == std::string::npos) continue;
    devices.push_back({line.substr(0, blank), line.substr(blank + 1)});
  }
  return devices;
}

// Reads until end of file, for at most `seconds`.
std::optional<std::string> read_with_limit(int fd, int seconds) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::string text;
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd, POLLIN, 0};
    int ready = poll(&waiting, 1, std::max<int>(0, static_cast<int>(left.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    std::array<char, 4096> buffer{};
    ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

std::vector<std::string> entries_of(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "GPU UUID:   GPU-..." in a device's information file.
std::string uuid_in(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("GPU UUID:")) return std::string(trim(line.substr(9)));
  }
  return {};
}

}  // namespace

// What drivers print goes nowhere, and one that holds the child in the kernel is left with it.
std::optional<std::string> probe_in_child(const std::function<void(int fd)>& probe, int seconds) {
  Result<OwnChild> child = OwnChild::start("muster-devices", probe);
  if (!child) return std::nullopt;
  std::optional<std::string> text = read_with_limit(child->output(), seconds);
  return child->end(kLastWait) ? text : std::nullopt;
}

DeviceList nvidia_gpus_in_proc(const std::string& proc_root) {
  DeviceList list;
  std::string directory = proc_root + "/driver/nvidia/gpus";
  for (const std::string& name : entries_of(directory)) {
    list.devices.push_back({name, uuid_in(directory + "/" + name + "/information")});
  }
  list.source = directory;
  return list;
}

DeviceList find_nvidia_gpus(const std::string& proc_root) {
  std::optional<std::vector<Device>> devices =
      devices_of(probe_in_child(probe_nvml, kProbeSeconds));
  if (devices && !devices->empty()) return {*devices, "NVML", ""};
  DeviceList list = nvidia_gpus_in_proc(proc_root);
  if (list.devices.empty()) {
    list.why_none =
        std::string(devices ? "NVML shows none" : "NVML (libnvidia-ml.so.1) cannot be used") +
        ", and " + list.source + " lists none";
  }
  return list;
}

DeviceList xpus_in_sysfs(const std::string& sys_root) {
  DeviceList list;
  list.source = sys_root + "/class/drm";
  for (const std::string& name : entries_of(list.source)) {
    if (!name.starts_with("renderD")) continue;
    std::string device = list.source + "/" + name + "/device";
    std::error_code ignored;
    std::string driver = fs::read_symlink(device + "/driver", ignored).filename();
    if (read_line(device + "/vendor") != "0x8086" || (driver != "i915" && driver != "xe")) continue;
    list.devices.push_back({fs::canonical(device, ignored).filename(), ""});
  }
  return list;
}

DeviceList find_xpus(const std::string& sys_root) {
  DeviceList in_sysfs = xpus_in_sysfs(sys_root);
  std::optional<std::vector<Device>> devices =
      devices_of(probe_in_child(probe_level_zero, kProbeSeconds));
  if (devices && !devices->empty()) {
    // Where both count alike, sysfs knows the addresses.
    bool alike = devices->size() == in_sysfs.devices.size();
    return {alike ? in_sysfs.devices : *devices, "Level Zero", ""};
  }
  if (in_sysfs.devices.empty()) {
    in_sysfs.why_none = std::string(devices ? "Level Zero shows none"
                                            : "Level Zero (libze_loader.so.1) cannot be used") +
                        ", and " + in_sysfs.source + " lists none";
  }
  return in_sysfs;
}

std::vector<Device> visible_gpus(const std::vector<Device>& all,
                                 const std::optional<std::string>& visible_devices) {
  if (!visible_devices) return all;
  std::vector<Device> visible;
  std::vector<std::string> seen;
  for (const std::string& part : split(*visible_devices, ',')) {
    std::string entry(trim(part));
    std::optional<int64_t> index = parse_int(entry);
    Device device;
    if (index && *index >= 0 && *index < static_cast<int64_t>(all.size())) {
      device = all[static_cast<size_t>(*index)];
      entry = std::to_string(*index);
    } else if (entry.starts_with("GPU-")) {
      auto found = std::find_if(all.begin(), all.end(), [&entry](const Device& other) {
        return other.uuid.starts_with(entry);
      });
      if (found == all.end()) break;
      device = *found;
      entry = device.uuid;
    } else if (entry.starts_with("MIG-")) {
      device.uuid = entry;
    } else {
      break;
    }
    if (std::find(seen.begin(), seen.end(), entry) != seen.end()) return {};
    seen.push_back(entry);
    visible.push_back(std::move(device));
  }
  return visible;
}

}  // namespace muster
