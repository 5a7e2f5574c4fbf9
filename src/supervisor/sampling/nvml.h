// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster {

// One GPU at one moment.
struct GpuReading {
  std::string pci;  // "0000:17:00.0"
  std::string uuid;
  double utilization = -1;   // 0..1; negative: not known
  int64_t memory_used = -1;  // bytes, of all processes
  int64_t memory_total = -1;
  bool lost = false;               // it does not answer any more: it fell off the bus
  int64_t uncorrected_errors = 0;  // of its memory, since the driver was loaded
  bool repair_pending = false;     // rows of its memory are replaced at the next reset
  // Who computes on it, with the memory that each uses; -1 where the driver does not tell.
  std::vector<std::pair<int, int64_t>> processes;
};

// What is wrong with it, or that its memory is used up: "GPU 0000:17:00.0 is lost: it fell off the
// bus". "" if nothing is worth telling.
std::string gpu_trouble(const GpuReading& reading);

// NVIDIA's management library, opened when it is first wanted. Its calls block, some of them for
// ever when a GPU is broken, so they belong on a thread that nobody waits for (gpu_watch.h).
class Nvml {
 public:
  // Null: it is not there or does not work.
  static std::unique_ptr<Nvml> open();
  virtual ~Nvml() = default;
  virtual std::vector<GpuReading> read() = 0;
};

}  // namespace muster
