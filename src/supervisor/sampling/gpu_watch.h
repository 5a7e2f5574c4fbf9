// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "supervisor/sampling/nvml.h"

namespace muster {

// Reads the GPUs on a thread of its own, which is made when somebody first asks and ends at once
// where there are none. A driver that hangs keeps that thread and nothing else: not the loop, not
// the pool, not our end. Owned by the sampler.
class GpuWatch {
 public:
  static constexpr std::chrono::seconds kStale{45};  // looks come every ten

  GpuWatch() = default;
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // What the last look found, and a new look begins. Nothing where the driver has not answered for
  // kStale: a GPU that was in use then says nothing of now.
  std::vector<GpuReading> look();

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);
  std::shared_ptr<Shared> shared_;  // null before the first look
};

// What one worker uses of the GPUs.
struct GpuShare {
  double utilization = -1;  // the mean of those that it computes on
  int64_t memory_used = -1;
};

// By the processes that compute on each GPU. `root_of` tells which of `workers` a process belongs
// to. Where none does, because the driver counts processes as another container or not at all, a
// worker is taken to use the GPU that its local rank stands for: `device_of[worker]`, an index into
// `readings` or -1.
std::vector<GpuShare> share_gpus(const std::vector<GpuReading>& readings,
                                 const std::unordered_map<int, size_t>& root_of,
                                 const std::vector<int>& device_of);

// The GPU that local rank `local_rank` stands for with that CUDA_VISIBLE_DEVICES, -1 if none.
int device_for(const std::vector<GpuReading>& readings, int local_rank,
               const std::optional<std::string>& visible_devices);

}  // namespace muster
