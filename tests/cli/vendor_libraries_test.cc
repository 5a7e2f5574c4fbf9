// SPDX-License-Identifier: Apache-2.0
//
// A binary of its own, whose run path leads to stand-ins for the vendors' libraries.
#include <doctest/doctest.h>

#include "supervisor/cli/device_probe.h"

namespace muster {

TEST_CASE("NVML's GPUs come with address and UUID") {
  DeviceList list = find_nvidia_gpus("/nowhere");
  CHECK(list.source == "NVML");
  REQUIRE(list.devices.size() == 2);
  CHECK(list.devices[0].pci == "0000:1a:00.0");
  CHECK(list.devices[1].pci == "0000:1b:00.0");
  CHECK(list.devices[1].uuid == "GPU-1");
}

TEST_CASE("Level Zero's devices are counted") {
  DeviceList list = find_xpus("/nowhere");
  CHECK(list.source == "Level Zero");
  CHECK(list.devices.size() == 3);
}

}  // namespace muster
