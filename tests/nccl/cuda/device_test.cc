// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/device.h"

#include <doctest/doctest.h>

namespace muster::comm::detail {

TEST_CASE("a rank takes the GPU of its local rank") {
  CHECK(*choose_device(8, -1, 3) == 3);
  CHECK(*choose_device(8, 5, 3) == 5);
}

TEST_CASE("the only visible GPU is the rank's own, whatever its local rank") {
  CHECK(*choose_device(1, -1, 3) == 0);
}

TEST_CASE("a local rank without a GPU is told how many there are") {
  const Result<int> none = choose_device(2, -1, 3);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code == ErrorCode::kInvalidArgument);
  CHECK(none.error().message.find("local rank 3 but only 2 GPUs are visible") != std::string::npos);
}

TEST_CASE("a device that is asked for must be there") {
  const Result<int> none = choose_device(1, 1, 0);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().message.find("device 1 is asked for, but only 1 GPU is visible") !=
        std::string::npos);
}

TEST_CASE("versions are told as NCCL tells them") {
  CHECK(nccl_version_text(22809) == "2.28.9");
  CHECK(nccl_version_text(21403) == "2.14.3");
  CHECK(nccl_version_text(2708) == "2.7.8");
}

}  // namespace muster::comm::detail
