// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/gpu_watch.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "supervisor/cli/device_probe.h"

namespace muster {

namespace {

// For a look that goes on when we end.
constexpr std::chrono::milliseconds kLastWait{300};

}  // namespace

struct GpuWatch::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool wanted = true;
  bool stop = false;
  bool ended = false;
  std::vector<GpuReading> readings;
  std::chrono::steady_clock::time_point asked{};  // since when nothing has come, if `reading`
  bool reading = false;
};

GpuWatch::~GpuWatch() {
  if (!shared_) return;
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kLastWait, [this] { return shared_->ended; });
}

std::vector<GpuReading> GpuWatch::look() {
  if (!shared_) {
    shared_ = std::make_shared<Shared>();
    // Signals are the loop's: the thread starts with all of them blocked.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([shared = shared_] { run(shared); }).detach();
    } catch (const std::system_error&) {
      shared_->ended = true;  // no more threads: no news of GPUs
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return {};
  }
  const std::lock_guard lock(shared_->mutex);
  shared_->wanted = true;
  shared_->changed.notify_all();
  if (shared_->reading && std::chrono::steady_clock::now() - shared_->asked > kStale) return {};
  return shared_->readings;
}

void GpuWatch::run(const std::shared_ptr<Shared>& shared) {
  const std::unique_ptr<Nvml> nvml = Nvml::open();
  std::unique_lock lock(shared->mutex);
  while (nvml && !shared->stop) {
    if (!shared->wanted) {
      shared->changed.wait(lock);
      continue;
    }
    shared->wanted = false;
    shared->reading = true;
    shared->asked = std::chrono::steady_clock::now();
    lock.unlock();
    std::vector<GpuReading> readings = nvml->read();
    lock.lock();
    shared->reading = false;
    shared->readings = std::move(readings);
  }
  shared->ended = true;
  shared->changed.notify_all();
}

std::vector<GpuShare> share_gpus(const std::vector<GpuReading>& readings,
                                 const std::unordered_map<int, size_t>& root_of,
                                 const std::vector<int>& device_of) {
  std::vector<GpuShare> shares(device_of.size());
  std::vector<int> used_by(device_of.size());
  bool any = false;
  for (const GpuReading& reading : readings) {
    std::vector<bool> here(device_of.size());
    for (const auto& [pid, memory] : reading.processes) {
      const auto owner = root_of.find(pid);
      if (owner == root_of.end()) continue;
      any = true;
      GpuShare& share = shares[owner->second];
      if (memory >= 0) share.memory_used = std::max<int64_t>(0, share.memory_used) + memory;
      if (here[owner->second] || reading.utilization < 0) continue;
      here[owner->second] = true;
      share.utilization = std::max(0.0, share.utilization) + reading.utilization;
      ++used_by[owner->second];
    }
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    if (used_by[i] > 1) shares[i].utilization /= used_by[i];
    const auto device = static_cast<size_t>(device_of[i]);
    if (any || device_of[i] < 0 || device >= readings.size()) continue;
    shares[i] = {readings[device].utilization, readings[device].memory_used};
  }
  return shares;
}

int device_for(const std::vector<GpuReading>& readings, int local_rank,
               const std::optional<std::string>& visible_devices) {
  std::vector<Device> all;
  all.reserve(readings.size());
  for (const GpuReading& reading : readings)
    all.push_back({reading.pci, reading.uuid});
  const std::vector<Device> visible = visible_gpus(all, visible_devices);
  const auto at = static_cast<size_t>(local_rank);
  // A worker that sees one GPU uses that one.
  const Device* device = visible.size() == 1   ? &visible[0]
                         : at < visible.size() ? &visible[at]
                                               : nullptr;
  for (size_t i = 0; device != nullptr && i < readings.size(); ++i) {
    if (readings[i].uuid == device->uuid) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace muster
