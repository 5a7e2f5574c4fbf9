// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/ranges.h"

#include <doctest/doctest.h>

namespace muster {

TEST_CASE("numbers are written as ranges") {
  CHECK(format_ranges({3, 0, 1, 2, 8, 8}) == "0-3,8");
  CHECK(format_ranges({5, 7}, ", ") == "5, 7");
  CHECK(format_ranges({}).empty());
}

TEST_CASE("ranges that are too long are cut behind a comma") {
  const std::string ranges = "0-3,8,120-140,999";
  CHECK(cut_ranges(ranges, ranges.size()) == ranges);
  CHECK(cut_ranges(ranges, 16) == "0-3,8,...");
  CHECK(cut_ranges(ranges, 9) == "0-3,8,...");
  CHECK(cut_ranges(ranges, 8) == "0-3,...");
  CHECK(cut_ranges(ranges, 3) == "...");
  for (size_t most = 3; most < ranges.size(); ++most)
    CHECK(cut_ranges(ranges, most).size() <= most);
  CHECK(cut_ranges("0-100000000", 5) == "...");
  CHECK(cut_ranges("", 0).empty());
}

}  // namespace muster
