// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/gpu_watch.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include "sampling/ticking.h"

using namespace muster;

namespace {

GpuReading gpu(double utilization, int64_t memory,
               std::vector<std::pair<int, int64_t>> processes = {}) {
  static int number = 0;
  GpuReading reading;
  reading.uuid = "GPU-" + std::to_string(number++);
  reading.utilization = utilization;
  reading.memory_used = memory;
  reading.processes = std::move(processes);
  return reading;
}

}  // namespace

TEST_CASE_FIXTURE(Ticking, "GPUs are read on a thread of their own") {
  setenv("MUSTER_FAKE_GPU_PID", "4711", 1);
  GpuWatch watch;
  std::vector<GpuReading> readings;
  REQUIRE(run_until([&] {
    readings = watch.look();
    return !readings.empty();
  }));
  unsetenv("MUSTER_FAKE_GPU_PID");
  REQUIRE(readings.size() == 2);
  CHECK(readings[0].utilization == 0.75);
  CHECK(readings[0].memory_used == int64_t{1} << 30);
  CHECK(readings[0].uuid == "GPU-0");
  CHECK(readings[0].pci == "0000:1a:00.0");
  CHECK(readings[0].processes.empty());
  CHECK(readings[1].processes == std::vector<std::pair<int, int64_t>>{{4711, 12345}});
}

TEST_CASE("a worker has the GPUs that its processes compute on") {
  const std::vector<GpuReading> readings = {gpu(0.5, 100, {{10, 40}, {11, 20}}),
                                            gpu(1.0, 200, {{10, 60}, {99, 1}})};
  const std::vector<GpuShare> shares = share_gpus(readings, {{10, 0}, {11, 0}, {20, 1}}, {0, 1});
  CHECK(shares[0].utilization == 0.75);
  CHECK(shares[0].memory_used == 120);
  CHECK(shares[1].utilization < 0);
  CHECK(shares[1].memory_used < 0);
}

TEST_CASE("where no process is known, a worker has the GPU of its local rank") {
  const std::vector<GpuReading> readings = {gpu(0.5, 100, {{77, 40}}), gpu(0.25, 200)};
  const std::vector<GpuShare> shares = share_gpus(readings, {{10, 0}}, {1, -1, 5});
  CHECK(shares[0].utilization == 0.25);
  CHECK(shares[0].memory_used == 200);
  CHECK(shares[1].utilization < 0);
  CHECK(shares[2].utilization < 0);
}

TEST_CASE("a driver that does not tell the memory of a process leaves it unknown") {
  const std::vector<GpuShare> shares = share_gpus({gpu(0.5, 100, {{10, -1}})}, {{10, 0}}, {0});
  CHECK(shares[0].utilization == 0.5);
  CHECK(shares[0].memory_used < 0);
}

TEST_CASE("local ranks count the GPUs that CUDA shows") {
  std::vector<GpuReading> readings(4);
  for (size_t i = 0; i < readings.size(); ++i)
    readings[i].uuid = "GPU-" + std::to_string(i) + "abc";
  CHECK(device_for(readings, 2, std::nullopt) == 2);
  CHECK(device_for(readings, 4, std::nullopt) == -1);
  CHECK(device_for(readings, 1, "3,2") == 2);
  CHECK(device_for(readings, 5, "3") == 3);
  CHECK(device_for(readings, 0, "GPU-2") == 2);
  CHECK(device_for(readings, 0, "") == -1);
  CHECK(device_for({}, 0, std::nullopt) == -1);
}

TEST_CASE("what is wrong with a GPU is told in a line, and nothing if all is well") {
  GpuReading reading;
  reading.pci = "0000:17:00.0";
  reading.memory_total = int64_t{80} << 30;
  reading.memory_used = int64_t{60} << 30;
  CHECK(gpu_trouble(reading) == "");
  reading.memory_used = int64_t{79} << 30;
  CHECK(gpu_trouble(reading) == "GPU 0000:17:00.0: 79.0 GiB of 80.0 GiB of memory in use");
  reading.uncorrected_errors = 2;
  reading.repair_pending = true;
  CHECK(gpu_trouble(reading) ==
        "GPU 0000:17:00.0: 2 uncorrected memory errors since the driver was loaded, rows of its "
        "memory wait to be replaced, 79.0 GiB of 80.0 GiB of memory in use");
  reading.lost = true;
  CHECK(gpu_trouble(reading) == "GPU 0000:17:00.0 is lost: it does not answer the driver any more");
}
