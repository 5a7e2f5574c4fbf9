// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/numa.h"

#include <doctest/doctest.h>

#include "cli/plan_fixture.h"
#include "supervisor/cli/ranges.h"

namespace muster {
namespace {

// Two sockets of two NUMA nodes, eight cores a node with two threads each (CPU n and n+32), a
// last-level cache for every four cores, and two GPUs a node.
struct NumaFixture : PlanFixture {
  static constexpr int kCores = 32;
  TempTree sys{TempTree::fast_base()};
  NumaFacts facts;

  NumaFixture() {
    for (int cpu = 0; cpu < 2 * kCores; ++cpu)
      add_cpu(cpu);
    for (int node = 0; node < 4; ++node) {
      sys.file("devices/system/node/node" + std::to_string(node) + "/cpulist",
               block(8 * node, 8) + "\n");
    }
    sys.file("devices/system/node/possible", "0-3\n");
    for (int gpu = 0; gpu < 8; ++gpu) {
      add_gpu("0000:1" + std::to_string(gpu) + ":00.0", gpu / 2);
    }
    facts.sys_root = sys.root();
    machine.sys_root = sys.root();
    for (int cpu = 0; cpu < 2 * kCores; ++cpu)
      facts.allowed.push_back(cpu);
  }

  // `count` cores from `first`, both threads: "8-15,40-47".
  static std::string block(int first, int count) {
    auto range = [count](int from) {
      return std::to_string(from) + "-" + std::to_string(from + count - 1);
    };
    return range(first) + "," + range(first + kCores);
  }

  void add_cpu(int cpu) const {
    int core = cpu % kCores;
    std::string base = "devices/system/cpu/cpu" + std::to_string(cpu);
    std::string siblings = std::to_string(core) + "," + std::to_string(core + kCores) + "\n";
    sys.file(base + "/topology/physical_package_id", std::to_string(core / 16) + "\n");
    sys.file(base + "/topology/thread_siblings_list", siblings);
    auto cache = [&](int index, int level, const char* type, const std::string& shared) {
      std::string where = base + "/cache/index" + std::to_string(index);
      sys.file(where + "/level", std::to_string(level) + "\n");
      sys.file(where + "/type", std::string(type) + "\n");
      sys.file(where + "/shared_cpu_list", shared + "\n");
    };
    cache(0, 1, "Data", siblings);
    cache(1, 1, "Instruction", siblings);
    cache(2, 2, "Unified", siblings);
    cache(3, 3, "Unified", block(core / 4 * 4, 4));
    cache(4, 4, "Instruction", "0-63");  // holds no data: does not count
  }

  void add_gpu(const std::string& address, int node) {
    sys.file("bus/pci/devices/" + address + "/numa_node", std::to_string(node) + "\n");
    facts.device_address.push_back(address);
  }

  std::string bound(NumaMode mode, int device) const {
    Result<CpuBinding> binding = numa_binding(mode, facts, device);
    return binding ? format_ranges(binding->cpus) : binding.error().message;
  }
};

}  // namespace

TEST_SUITE_BEGIN("numa");

TEST_CASE_FIXTURE(NumaFixture, "node: the CPUs of the device's node") {
  CHECK(bound(NumaMode::kNode, 0) == "0-7,32-39");
  CHECK(bound(NumaMode::kNode, 3) == "8-15,40-47");
  CHECK(bound(NumaMode::kNode, 7) == "24-31,56-63");
}

TEST_CASE_FIXTURE(NumaFixture, "node: only CPUs of the affinity mask") {
  facts.allowed = {1, 2, 9, 33};
  CHECK(bound(NumaMode::kNode, 0) == "1-2,33");
  CHECK(has(bound(NumaMode::kNode, 7), "none of the CPUs of NUMA node 3"));
}

TEST_CASE_FIXTURE(NumaFixture, "socket: every node of the device's package") {
  CHECK(bound(NumaMode::kSocket, 0) == "0-15,32-47");
  CHECK(bound(NumaMode::kSocket, 3) == "0-15,32-47");
  CHECK(bound(NumaMode::kSocket, 4) == "16-31,48-63");
}

TEST_CASE_FIXTURE(NumaFixture, "socket: fails if a possible node has no CPU of ours, as torchrun") {
  sys.file("devices/system/node/possible", "0-4\n");
  sys.file("devices/system/node/node4/cpulist", "\n");
  CHECK(has(bound(NumaMode::kSocket, 0), "none of the CPUs of NUMA node 4"));
}

TEST_CASE_FIXTURE(NumaFixture, "exclusive: the node's cores are dealt out among its devices") {
  CHECK(bound(NumaMode::kExclusive, 0) == "0-3,32-35");
  CHECK(bound(NumaMode::kExclusive, 1) == "4-7,36-39");
  CHECK(bound(NumaMode::kExclusive, 6) == "24-27,56-59");
}

TEST_CASE_FIXTURE(NumaFixture, "exclusive: the first devices get the cores that are over") {
  add_gpu("0000:18:00.0", 0);  // three devices for eight cores: 3, 3, 2
  CHECK(bound(NumaMode::kExclusive, 0) == "0-2,32-34");
  CHECK(bound(NumaMode::kExclusive, 1) == "3-5,35-37");
  CHECK(bound(NumaMode::kExclusive, 8) == "6-7,38-39");
}

TEST_CASE_FIXTURE(NumaFixture, "exclusive: half-allowed cores count, too few cores are an error") {
  facts.allowed = {0, 2, 33, 34};  // cores 0, 1 and 2
  CHECK(bound(NumaMode::kExclusive, 0) == "0,33");
  CHECK(bound(NumaMode::kExclusive, 1) == "2,34");
  facts.allowed = {0, 32};
  CHECK(has(bound(NumaMode::kExclusive, 0), "1 cores for 2 devices: too few"));
}

TEST_CASE_FIXTURE(NumaFixture, "core-complex: devices take the last-level caches in turn") {
  CHECK(bound(NumaMode::kCoreComplex, 2) == "8-11,40-43");
  CHECK(bound(NumaMode::kCoreComplex, 3) == "12-15,44-47");
  add_gpu("0000:18:00.0", 1);
  CHECK(bound(NumaMode::kCoreComplex, 8) == "8-11,40-43");
}

TEST_CASE_FIXTURE(NumaFixture, "core-complex: the largest group comes first") {
  facts.allowed = {0, 1, 4, 5, 6};
  CHECK(bound(NumaMode::kCoreComplex, 0) == "4-6");
  CHECK(bound(NumaMode::kCoreComplex, 1) == "0-1");
}

TEST_CASE_FIXTURE(NumaFixture, "a node that the firmware does not name is node 0") {
  sys.file("bus/pci/devices/0000:17:00.0/numa_node", "-1\n");
  CHECK(bound(NumaMode::kNode, 7) == "0-7,32-39");
}

TEST_CASE_FIXTURE(NumaFixture, "what is missing is named") {
  CHECK(has(bound(NumaMode::kNode, 8), "there is no device for local rank 8; 8 visible"));
  std::filesystem::remove(sys.path("bus/pci/devices/0000:11:00.0/numa_node"));
  CHECK(has(bound(NumaMode::kNode, 1), "0000:11:00.0/numa_node cannot be read"));
  facts.device_address[2] = "";
  CHECK(has(bound(NumaMode::kNode, 2), "the PCI address of device 2 is not known"));
  facts.device_address.clear();
  CHECK(bound(NumaMode::kNode, 0) == "--numa-binding node: No accelerator available");
}

TEST_CASE_FIXTURE(NumaFixture, "a plan binds each worker to CPUs of its visible device") {
  machine.allowed_cpus = facts.allowed;
  set_gpus(8);
  LaunchPlan made = plan({"--numa-binding", "node", "--gpus", "6,0", "x"});
  CHECK(format_ranges(made.workers[0].cpus) == "24-31,56-63");
  CHECK(format_ranges(made.workers[1].cpus) == "0-7,32-39");
  CHECK(made.workers[0].cpus_why == "NUMA node 3 of device 0");
  made = plan(
      {"--numa-binding", "exclusive", "--nproc-per-node", "gpu", "--omp-threads", "auto", "x"});
  CHECK(format_ranges(made.workers[7].cpus) == "28-31,60-63");
  CHECK(variable(made, 7, "OMP_NUM_THREADS") == "4");
  CHECK(variable(plan({"--numa-binding", "node", "--nproc-per-node", "gpu", "--omp-threads", "auto",
                       "x"}),
                 7, "OMP_NUM_THREADS") == "4");
}

TEST_CASE_FIXTURE(NumaFixture, "without an accelerator a binding is a usage error") {
  Error refused = error({"--numa-binding", "node", "x"});
  CHECK(refused.code == 2);
  CHECK(has(refused.message, "No accelerator available"));
}

TEST_CASE_FIXTURE(NumaFixture, "XPUs are bound by their address in sysfs") {
  machine.allowed_cpus = facts.allowed;
  machine.xpus = [] { return DeviceList{{{"0000:12:00.0", ""}}, "sysfs", ""}; };
  CHECK(format_ranges(plan({"--numa-binding", "node", "x"}).workers[0].cpus) == "8-15,40-47");
}

TEST_SUITE_END();

}  // namespace muster
