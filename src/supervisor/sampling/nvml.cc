// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace muster {

namespace {

constexpr unsigned kMaxDevices = 64;
constexpr unsigned kMaxProcesses = 256;  // on one device

// As the library lays them out since its versions with the numbers below.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
struct Utilization {
  unsigned gpu;  // percent
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr int kGpuIsLost = 15;  // an answer of any function
constexpr int kUncorrected = 1;
constexpr int kSinceDriverLoad = 0;

using GetErrors = int (*)(void*, int, int, unsigned long long*);
using GetRows = int (*)(void*, unsigned*, unsigned*, unsigned*, unsigned*);
using GetProcesses = int (*)(void*, unsigned*, ProcessInfo*);

class NvmlImpl final : public Nvml {
 public:
  explicit NvmlImpl(void* library) : library_(library) {}

  bool start() {
    auto init = symbol<int (*)()>("nvmlInit_v2");
    auto get_count = symbol<int (*)(unsigned*)>("nvmlDeviceGetCount_v2");
    auto get_device = symbol<int (*)(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
    if (init == nullptr || get_count == nullptr || get_device == nullptr || init() != 0)
      return false;
    unsigned count = 0;
    if (get_count(&count) != 0) return false;
    for (unsigned i = 0; i < std::min(count, kMaxDevices); ++i) {
      void* device = nullptr;
      if (get_device(i, &device) == 0) devices_.push_back(device);
    }
    get_utilization_ = symbol<int (*)(void*, Utilization*)>("nvmlDeviceGetUtilizationRates");
    get_memory_ = symbol<int (*)(void*, Memory*)>("nvmlDeviceGetMemoryInfo");
    get_errors_ = symbol<GetErrors>("nvmlDeviceGetTotalEccErrors");
    get_rows_ = symbol<GetRows>("nvmlDeviceGetRemappedRows");
    get_uuid_ = symbol<int (*)(void*, char*, unsigned)>("nvmlDeviceGetUUID");
    get_pci_ = symbol<int (*)(void*, PciInfo*)>("nvmlDeviceGetPciInfo_v3");
    get_processes_ = symbol<GetProcesses>("nvmlDeviceGetComputeRunningProcesses_v3");
    if (get_processes_ == nullptr)
      get_processes_ = symbol<GetProcesses>("nvmlDeviceGetComputeRunningProcesses_v2");
    return !devices_.empty();
  }

  std::vector<GpuReading> read() override {
    std::vector<GpuReading> readings;
    readings.reserve(devices_.size());
    for (void* device : devices_)
      readings.push_back(read_one(device));
    return readings;
  }

 private:
  template <typename Function>
  Function symbol(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

  GpuReading read_one(void* device) const {
    GpuReading reading;
    Utilization utilization{};
    if (get_utilization_ != nullptr && get_utilization_(device, &utilization) == 0)
      reading.utilization = std::min(1.0, utilization.gpu / 100.0);
    Memory memory{};
    const int answer = get_memory_ == nullptr ? -1 : get_memory_(device, &memory);
    if (answer == 0) {
      reading.memory_used = static_cast<int64_t>(memory.used);
      reading.memory_total = static_cast<int64_t>(memory.total);
    }
    reading.lost = answer == kGpuIsLost;
    read_errors(device, reading);
    std::array<char, 96> uuid{};
    if (get_uuid_ != nullptr && get_uuid_(device, uuid.data(), uuid.size() - 1) == 0)
      reading.uuid = uuid.data();
    PciInfo pci{};
    if (get_pci_ != nullptr && get_pci_(device, &pci) == 0) {
      std::array<char, 32> address{};
      std::snprintf(address.data(), address.size(), "%04x:%02x:%02x.0", pci.domain, pci.bus,
                    pci.device);
      reading.pci = address.data();
    }
    std::array<ProcessInfo, kMaxProcesses> processes{};
    unsigned count = kMaxProcesses;
    // More than that is an error of the library's, and then nobody is told.
    if (get_processes_ == nullptr || get_processes_(device, &count, processes.data()) != 0)
      return reading;
    for (unsigned i = 0; i < std::min(count, kMaxProcesses); ++i) {
      const unsigned long long used = processes[i].used_memory;
      reading.processes.emplace_back(static_cast<int>(processes[i].pid),
                                     used == kNotAvailable ? -1 : static_cast<int64_t>(used));
    }
    return reading;
  }

  void read_errors(void* device, GpuReading& reading) const {
    unsigned long long errors = 0;
    if (get_errors_ != nullptr && get_errors_(device, kUncorrected, kSinceDriverLoad, &errors) == 0)
      reading.uncorrected_errors = static_cast<int64_t>(errors);
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (get_rows_ != nullptr &&
        get_rows_(device, &corrected, &uncorrected, &pending, &failed) == 0) {
      reading.repair_pending = pending != 0;
    }
  }

  void* library_;  // never closed: drivers do not like it
  std::vector<void*> devices_;
  int (*get_utilization_)(void*, Utilization*) = nullptr;
  int (*get_memory_)(void*, Memory*) = nullptr;
  int (*get_uuid_)(void*, char*, unsigned) = nullptr;
  int (*get_pci_)(void*, PciInfo*) = nullptr;
  GetErrors get_errors_ = nullptr;
  GetRows get_rows_ = nullptr;
  GetProcesses get_processes_ = nullptr;
};

std::string gibibytes(int64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text.data();
}

}  // namespace

std::string gpu_trouble(const GpuReading& reading) {
  const std::string name = "GPU " + reading.pci;
  if (reading.lost) return name + " is lost: it does not answer the driver any more";
  std::string text;
  if (reading.uncorrected_errors > 0) {
    text = std::to_string(reading.uncorrected_errors) +
           " uncorrected memory errors since the driver was loaded";
  }
  if (reading.repair_pending) {
    text += std::string(text.empty() ? "" : ", ") + "rows of its memory wait to be replaced";
  }
  // A twentieth is what its driver and libraries take.
  const bool used_up = reading.memory_total > 0 &&
                       reading.memory_used > reading.memory_total - reading.memory_total / 20;
  if (used_up) {
    text += std::string(text.empty() ? "" : ", ") + gibibytes(reading.memory_used) + " of " +
            gibibytes(reading.memory_total) + " of memory in use";
  }
  return text.empty() ? "" : name + ": " + text;
}

std::unique_ptr<Nvml> Nvml::open() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto nvml = std::make_unique<NvmlImpl>(library);
  if (!nvml->start()) return nullptr;
  return nvml;
}

}  // namespace muster
