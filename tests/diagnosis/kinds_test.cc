// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/kinds.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>
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

TEST_CASE("docs/failures.md has the table of kinds") {
  std::stringstream text;
  text << std::ifstream(MUSTER_SOURCE_DIR "/docs/failures.md").rdbuf();
  const std::string doc = text.str();
  size_t rows = 0;
  auto heals = [](Heals how) -> std::string {
    if (how == Heals::kYes) return "yes";
    return how == Heals::kNo ? "no" : "not before any other output";
  };
  for (const FailureKind& kind : failure_kinds()) {
    CAPTURE(kind.name);
    const std::string begin = "\n| `" + std::string(kind.name) + "` | " + std::string(kind.reason);
    const std::string end =
        " | " + heals(kind.heals) + (kind.victim ? " | victim |" : " | cause |");
    const size_t at = doc.find(begin);
    REQUIRE(at != std::string::npos);
    const std::string row = doc.substr(at + 1, doc.find('\n', at + 1) - at - 1);
    CHECK(row.ends_with(end));
    ++rows;
  }
  // And no kind that is not there any more.
  size_t documented = 0;
  for (const char* end : {" | cause |\n", " | victim |\n"})
    for (size_t at = doc.find(end); at != std::string::npos; at = doc.find(end, at + 1))
      ++documented;
  CHECK(documented == rows);
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
