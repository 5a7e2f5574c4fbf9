// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous/victims.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

std::string ranks_of(std::string_view text, int first = 0, int count = 8, int root = -1) {
  VictimFold fold({root});
  fold.add("stopped by muster", text, first, count);
  return fold.groups().empty() ? "" : fold.groups()[0].ranks;
}

}  // namespace

TEST_CASE("victims of one reason are one group, whoever reports them") {
  VictimFold fold({-1});
  fold.add("stopped by muster", "0-2", 0, 4);
  fold.add("killed by SIGKILL", "3", 0, 4);
  fold.add("stopped by muster", "4,6-7", 4, 4);
  REQUIRE(fold.groups().size() == 2);
  CHECK(fold.groups()[0].ranks == "0-2,4,6-7");
  CHECK(fold.groups()[1].ranks == "3");
}

TEST_CASE("a node speaks only of its own ranks, and the root is nobody's victim") {
  CHECK(ranks_of("0-7", 2, 3) == "2-4");
  CHECK(ranks_of("0-9000000000000000000") == "0-7");
  CHECK(ranks_of("8,9") == "");
  CHECK(ranks_of("0-7", 0, 8, 3) == "0-2,4-7");
}

TEST_CASE("ranks that make no sense are left out") {
  for (const char* text : {"", "x", "-", ",", "5-x", "99999999999999999999", "7-2"}) {
    CAPTURE(text);
    CHECK(ranks_of(text) == "");
  }
  CHECK(ranks_of("1,x,2") == "1");
}

}  // namespace muster
