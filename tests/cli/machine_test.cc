// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/machine.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>

#include "cli/plan_fixture.h"
#include "supervisor/cli/device_probe.h"
#include "supervisor/cli/ranges.h"

namespace muster {
namespace {

std::string indices(const std::string& setting, int count) {
  std::vector<Device> all;
  for (int i = 0; i < count; ++i)
    all.push_back({std::to_string(i), "GPU-a" + std::to_string(i)});
  std::string out;
  for (const Device& device : visible_gpus(all, setting)) {
    out += device.pci.empty() ? device.uuid : device.pci;
  }
  return out;
}

}  // namespace

TEST_SUITE_BEGIN("machine");

TEST_CASE("CPU lists are read and written as the kernel does") {
  CHECK(parse_cpu_list("0-3,8\n") == std::vector<int>{0, 1, 2, 3, 8});
  CHECK(parse_cpu_list("\n") == std::vector<int>{});
  CHECK(format_ranges({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(format_ranges({}) == "");
  CHECK(parse_ranges("0-3,8, 10", 9) == std::vector<int>{0, 1, 2, 3, 8, 10});
  CHECK(parse_ranges("1,4-2000000000", 3) == std::vector<int>{1, 4, 5});
  for (const char* text : {"", "x", "-1", "99999999999"})
    CHECK(parse_ranges(text, 9).empty());
  CHECK(parse_ranges("3,...", 9) == std::vector<int>{3});
  for (const char* text : {"a", "3-1", "1,", "-1", "0-999999999"})
    CHECK(!parse_cpu_list(text));
}

TEST_CASE("the tightest cgroup on the way up counts") {
  TempTree tree;
  tree.file("proc/self/cgroup", "0::/a/b\n");
  tree.file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  tree.file("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  CHECK(cgroup_cpu_share(tree.path("proc"), tree.path("sys")) == 1.5);
  tree.file("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  CHECK(cgroup_cpu_share(tree.path("proc"), tree.path("sys")) == 0.5);
}

TEST_CASE("cgroups of version 1, and none at all") {
  TempTree tree;
  CHECK(cgroup_cpu_share(tree.path("proc"), tree.path("sys")) == 0);
  tree.file("proc/self/cgroup", "4:cpu,cpuacct:/x\n1:name=systemd:/\n");
  tree.file("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "400000\n");
  tree.file("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  CHECK(cgroup_cpu_share(tree.path("proc"), tree.path("sys")) == 4);
  tree.file("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  CHECK(cgroup_cpu_share(tree.path("proc"), tree.path("sys")) == 0);
}

TEST_CASE("this machine has a name and a CPU") {
  Machine machine = this_machine();
  CHECK(!machine.host.empty());
  CHECK(!machine.allowed_cpus.empty());
  CHECK(count_cores("/sys", machine.allowed_cpus) >= 1);
}

TEST_CASE("visible GPUs follow CUDA's rules") {
  CHECK(indices("2,0", 4) == "20");
  CHECK(indices("", 4) == "");
  CHECK(indices("1,9,2", 4) == "1");
  CHECK(indices("-1", 4) == "");
  CHECK(indices("1,1", 4) == "");
  CHECK(indices("GPU-a2, 0", 4) == "20");
  CHECK(indices("GPU-x", 4) == "");
  CHECK(indices("MIG-1,MIG-2", 4) == "MIG-1MIG-2");
}

TEST_CASE("GPUs are found in the driver's proc folder") {
  TempTree tree;
  tree.file("driver/nvidia/gpus/0000:b1:00.0/information",
            "Model: \t\t H\nGPU UUID: \t GPU-b\nBus Type: \t PCIe\n");
  tree.file("driver/nvidia/gpus/0000:17:00.0/information", "GPU UUID: \t GPU-a\n");
  DeviceList list = nvidia_gpus_in_proc(tree.root());
  REQUIRE(list.devices.size() == 2);
  CHECK(list.devices[0].pci == "0000:17:00.0");
  CHECK(list.devices[1].uuid == "GPU-b");
  CHECK(nvidia_gpus_in_proc(tree.path("none")).devices.empty());
}

TEST_CASE("XPUs are Intel's render nodes with a driver that computes") {
  TempTree tree;
  auto add = [&tree](const std::string& node, const std::string& address, const std::string& vendor,
                     const std::string& driver) {
    tree.file("devices/" + address + "/vendor", vendor + "\n");
    tree.file("class/drm/" + node + "/dev", "226:128\n");
    std::filesystem::create_directories(tree.path("bus/" + driver));
    std::filesystem::create_symlink(tree.path("bus/" + driver),
                                    tree.path("devices/" + address + "/driver"));
    std::filesystem::create_symlink(tree.path("devices/" + address),
                                    tree.path("class/drm/" + node + "/device"));
  };
  add("renderD128", "0000:3a:00.0", "0x8086", "xe");
  add("renderD129", "0000:3b:00.0", "0x1002", "amdgpu");
  add("card0", "0000:3c:00.0", "0x8086", "i915");
  DeviceList list = xpus_in_sysfs(tree.root());
  REQUIRE(list.devices.size() == 1);
  CHECK(list.devices[0].pci == "0000:3a:00.0");
}

TEST_CASE("a probe that crashes or hangs costs its child alone") {
  CHECK(probe_in_child([](int fd) { CHECK(write(fd, "x", 1) == 1); }, 10) == "x");
  CHECK(!probe_in_child([](int) { _exit(1); }, 10));
  CHECK(!probe_in_child([](int) { raise(SIGKILL); }, 10));
  CHECK(!probe_in_child([](int) { pause(); }, 0));
}

TEST_CASE("real probes find devices or say why not") {
  DeviceList gpus = find_nvidia_gpus("/proc");
  CHECK(gpus.devices.empty() != gpus.why_none.empty());
  DeviceList xpus = find_xpus("/sys");
  CHECK(xpus.devices.empty() != xpus.why_none.empty());
}

TEST_SUITE_END();

}  // namespace muster
