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
  CHECK(table_size() >= 64 + 4 * 18);
  // More than the limit allows is no trouble, and neither is a limit of nothing.
  make_room_for_descriptors({100, 100, 100}, 1'000'000);
  make_room_for_descriptors({1, 1, 1}, 4);
}
