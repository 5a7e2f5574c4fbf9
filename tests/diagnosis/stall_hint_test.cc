// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/stall_hint.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace muster {

TEST_CASE("each kind of stall that the events' page names has its hint, and no other has") {
  std::ifstream file(MUSTER_SOURCE_DIR "/docs/events.md");
  std::stringstream whole;
  whole << file.rdbuf();
  const std::string text = whole.str();
  const size_t row = text.find("| `stall_found` |");
  REQUIRE(row != std::string::npos);
  const size_t begin = text.find("`kind` (", row);
  const std::string kinds = text.substr(begin, text.find(')', begin) - begin);
  size_t named = 0;
  for (const StallHint& hint : stall_hints()) {
    CAPTURE(hint.kind);
    CHECK(kinds.find("`" + std::string(hint.kind) + "`") != std::string::npos);
    CHECK(stall_hint(hint.kind).size() > 40);
    ++named;
  }
  CHECK(2 * named + 2 == static_cast<size_t>(std::count(kinds.begin(), kinds.end(), '`')));
}

TEST_CASE("of an unknown kind of stall nothing is said") {
  CHECK(stall_hint("from_the_future").empty());
}

}  // namespace muster
