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

TEST_CASE("a list of ranges is read back up to what is none") {
  using Numbers = std::vector<int>;
  CHECK(parse_ranges("0-3,8", 10) == Numbers{0, 1, 2, 3, 8});
  CHECK(parse_ranges("0-1, 5", 10) == Numbers{0, 1, 5});
  CHECK(parse_ranges("0-1,...", 10) == Numbers{0, 1});
  CHECK(parse_ranges("0-9", 10).size() == 10);
  CHECK(parse_ranges("0-4294967295", 10).empty());
  CHECK(parse_ranges("0-1000000", 10).size() == 10);
  CHECK(parse_ranges("1;2", 10) == Numbers{1});
  for (const char* bad : {"", "x", "3-", "5-3", "-1"})
    CHECK(parse_ranges(bad, 10).empty());
}

}  // namespace muster
