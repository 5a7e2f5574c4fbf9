// SPDX-License-Identifier: Apache-2.0
#include "supervisor/cli/stream_map.h"

#include <doctest/doctest.h>

namespace muster {
namespace {

constexpr StreamSet kNone{false, false};
constexpr StreamSet kOut{true, false};
constexpr StreamSet kErr{false, true};
constexpr StreamSet kBoth{true, true};

}  // namespace

TEST_CASE("a single digit is for every worker") {
  Result<StreamMap> map = parse_stream_map("3");
  REQUIRE(map);
  CHECK(map->for_rank(0) == kBoth);
  CHECK(map->for_rank(4711) == kBoth);
  CHECK(map->highest_named() == -1);
  CHECK(parse_stream_map("0")->for_rank(0) == kNone);
  CHECK(parse_stream_map("1")->for_rank(0) == kOut);
  CHECK(parse_stream_map("2")->for_rank(0) == kErr);
}

TEST_CASE("a map names ranks of any number of digits and leaves the others alone") {
  Result<StreamMap> map = parse_stream_map("0:1,10:2,100:3");
  REQUIRE(map);
  CHECK(map->for_rank(0) == kOut);
  CHECK(map->for_rank(1) == kNone);
  CHECK(map->for_rank(10) == kErr);
  CHECK(map->for_rank(100) == kBoth);
  CHECK(map->highest_named() == 100);
}

TEST_CASE("ranges are inclusive and a later entry wins") {
  Result<StreamMap> map = parse_stream_map("0-7:3, 4:1");
  REQUIRE(map);
  CHECK(map->for_rank(7) == kBoth);
  CHECK(map->for_rank(4) == kOut);
  CHECK(map->for_rank(8) == kNone);
}

TEST_CASE("a huge range costs nothing") {
  Result<StreamMap> map = parse_stream_map("0-2147483647:1");
  REQUIRE(map);
  CHECK(map->for_rank(2147483647) == kOut);
}

TEST_CASE("what is no map is refused and quoted") {
  for (const char* text : {"", "4", "-1", "33", "0:4", "0:", ":1", "a:1", "1:1,", "3,0:1", "7-0:1",
                           "0:1:2", "0-:1", "-3:1", "99999999999:1", "0=1"}) {
    CAPTURE(text);
    Result<StreamMap> map = parse_stream_map(text);
    REQUIRE(!map);
    CHECK(map.error().message.find("RANK:0-3") != std::string::npos);
  }
  CHECK(parse_stream_map("0:1,x:2").error().message.starts_with("'x:2'"));
}

TEST_CASE("a rank filter takes lists and ranges, and the empty one passes all") {
  Result<RankFilter> filter = parse_rank_filter("0, 3-5");
  REQUIRE(filter);
  CHECK(filter->passes(0));
  CHECK(!filter->passes(1));
  CHECK(filter->passes(5));
  CHECK(!filter->passes(6));
  CHECK(filter->highest_named() == 5);
  CHECK(parse_rank_filter("")->passes_all());
  CHECK(parse_rank_filter("")->passes(9));
  for (const char* text : {"a", "1,", "5-3", "-1", "1;2"}) {
    CAPTURE(text);
    CHECK(!parse_rank_filter(text));
  }
}

}  // namespace muster
