// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/advice.h"

#include <doctest/doctest.h>

#include "supervisor/diagnosis/diagnose.h"

TEST_CASE("there is advice for every kind of failure") {
  std::vector<std::string_view> kinds = muster::failure_kinds();
  kinds.insert(kinds.end(), {"hung", "node_lost"});
  for (std::string_view kind : kinds) {
    CAPTURE(kind);
    CHECK_FALSE(muster::advice_for(kind).reason.empty());
    CHECK_FALSE(muster::advice_for(kind).hint.empty());
  }
}

TEST_CASE("of an unknown kind nothing is said") {
  CHECK(muster::advice_for("from_the_future").hint.empty());
}
