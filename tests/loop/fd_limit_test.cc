// SPDX-License-Identifier: Apache-2.0
#include "loop/fd_limit.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

using namespace muster;

namespace {

int table_size() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("FDSize:")) return std::stoi(line.substr(7));
  }
  return -1;
}

}  // namespace

TEST_CASE("the table of descriptors has room for the workers before they come") {
  const FdLimit limit = raise_fd_limit();
  REQUIRE(limit.now > 200);
  make_room_for_descriptors(limit, 4);
  CHECK(static_cast<uint64_t>(table_size()) >= descriptors_for(4).most);
  // More than the limit allows is no trouble, and neither is a limit of nothing.
  make_room_for_descriptors({100, 100, 100}, 1'000'000);
  make_room_for_descriptors({1, 1, 1}, 4);
}

TEST_CASE("a limit is too low from what the workers may need on") {
  const DescriptorNeed need = descriptors_for(100);
  CHECK(need.own == 64 + 100 * 10);
  CHECK(need.most == need.own + 100 * 10);
  CHECK_FALSE(fd_limit_too_low({0, need.most, need.most}, 100));
  const auto line = fd_limit_too_low({0, need.most - 1, need.most - 1}, 100);
  REQUIRE(line);
  CHECK(line->find("100 workers, which may need " + std::to_string(need.most)) !=
        std::string::npos);
}
