// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/kinds.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "supervisor/diagnosis/rules.h"

namespace muster {

TEST_CASE("kinds are unique, stable names with a reason and a hint each") {
  std::set<std::string_view> seen;
  for (const FailureKind& kind : failure_kinds()) {
    CAPTURE(kind.name);
    CHECK(kind.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
    CHECK(seen.insert(kind.name).second);
    CHECK_FALSE(kind.reason.empty());
    CHECK_FALSE(kind.hint.empty());
  }
  CHECK(seen.contains("exit_code"));
  CHECK(seen.contains("node_lost"));
}

TEST_CASE("of an unknown kind nothing is said") {
  CHECK(failure_kind("from_the_future").hint.empty());
}

TEST_CASE("every rule gives a kind of the table") {
  for (auto rules : {native_rules(), communication_rules(), resource_rules()}) {
    for (const Rule& rule : rules) {
      CAPTURE(rule.kind);
      CAPTURE(rule.text);
      CHECK(failure_kind(rule.kind).name == rule.kind);
      // What may stand anywhere must say something.
      CHECK((rule.applies != nullptr || rule.text.size() > 5));
    }
  }
}

}  // namespace muster
