// SPDX-License-Identifier: Apache-2.0
#include "store/table.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

std::string value_of(const Table& table, std::string_view key) {
  const std::string* value = table.find(key);
  return value ? *value : "(none)";
}

}  // namespace

TEST_CASE("set replaces, append concatenates and creates") {
  Table table;
  CHECK(table.set("/k", "one"));
  CHECK(table.set("/k", "two"));
  CHECK(table.append("/k", "+"));
  CHECK(table.append("/new", "first"));
  CHECK(value_of(table, "/k") == "two+");
  CHECK(value_of(table, "/new") == "first");
  CHECK(table.size() == 2);
}

TEST_CASE("add keeps decimal text and reads it leniently") {
  Table table;
  CHECK(table.add("/n", 5) == 5);
  CHECK(table.add("/n", -8) == -3);
  CHECK(value_of(table, "/n") == "-3");
  CHECK(table.add("/zero", 0) == 0);
  CHECK(value_of(table, "/zero") == "0");
  for (std::string_view seven : {" 7x", "\t\n7", "+7", "7", "007 8"}) {
    table.set("/n", seven);
    CHECK(table.add("/n", 1) == 8);
  }
}

TEST_CASE("add to what is no number is refused and changes nothing") {
  Table table;
  for (std::string_view text : {"", "x", " ", "-", "+", "+-7", "- 7", "99999999999999999999"}) {
    table.set("/n", text);
    CAPTURE(text);
    CHECK_FALSE(table.add("/n", 1).has_value());
    CHECK(value_of(table, "/n") == text);
  }
}

TEST_CASE("add wraps around") {
  Table table;
  table.set("/n", "9223372036854775807");
  CHECK(table.add("/n", 1) == INT64_MIN);
  CHECK(value_of(table, "/n") == "-9223372036854775808");
  CHECK(table.add("/n", -1) == INT64_MAX);
}

TEST_CASE("compare_set has four cases") {
  Table table;
  Table::Compared missing = table.compare_set("/k", "expected", "desired");
  CHECK(missing.value == "expected");
  CHECK_FALSE(missing.stored);
  CHECK(table.find("/k") == nullptr);

  Table::Compared created = table.compare_set("/k", "", "first");
  CHECK(created.value == "first");
  CHECK(created.stored);

  Table::Compared different = table.compare_set("/k", "wrong", "second");
  CHECK(different.value == "first");
  CHECK_FALSE(different.stored);

  Table::Compared equal = table.compare_set("/k", "first", "second");
  CHECK(equal.value == "second");
  CHECK(value_of(table, "/k") == "second");
}

TEST_CASE("an empty stored value is present and equals an empty expectation") {
  Table table;
  table.set("/k", "");
  CHECK(table.compare_set("/k", "x", "y").value == "");
  CHECK(value_of(table, "/k") == "");
  CHECK(table.compare_set("/k", "", "now").stored);
  CHECK(value_of(table, "/k") == "now");
}

TEST_CASE("queues are first in, first out and apart from the values") {
  Table table;
  CHECK(table.queue_length("/q") == 0);
  table.queue_push("/q", "one");
  table.queue_push("/q", "two");
  CHECK(table.queue_length("/q") == 2);
  CHECK(table.exists("/q"));
  CHECK(table.find("/q") == nullptr);
  CHECK(table.size() == 0);
  CHECK(table.queue_pop("/q") == "one");
  CHECK(table.queue_pop("/q") == "two");
  CHECK_FALSE(table.exists("/q"));
  CHECK(table.bytes() == 0);
}

TEST_CASE("erase says whether there was a value and leaves a queue alone") {
  Table table;
  table.set("/k", "v");
  table.queue_push("/k", "item");
  CHECK(table.erase("/k"));
  CHECK_FALSE(table.erase("/k"));
  CHECK(table.queue_length("/k") == 1);
}

TEST_CASE("the bytes it holds are counted exactly") {
  Table table;
  table.set("/a", "1234567890");
  CHECK(table.bytes() == Table::kEntryOverhead + 12);
  table.set("/a", "1");
  CHECK(table.bytes() == Table::kEntryOverhead + 3);
  table.append("/a", "23");
  table.add("/a", 877);  // 123 -> 1000
  CHECK(table.bytes() == Table::kEntryOverhead + 6);
  table.add("/a", -1);
  CHECK(table.bytes() == Table::kEntryOverhead + 5);
  table.erase("/a");
  CHECK(table.bytes() == 0);
}

TEST_CASE("a full table refuses every growth and keeps what it has") {
  Table table(Table::Limits{2 * Table::kEntryOverhead, 1000});
  REQUIRE(table.set("/k", std::string(100, 'v')));
  const std::string large(200, 'x');
  CHECK_FALSE(table.set("/other", large));
  CHECK_FALSE(table.set("/k", large));
  CHECK_FALSE(table.append("/k", large));
  CHECK_FALSE(table.queue_push("/q", large));
  CHECK(table.compare_set("/other", "", large).full);
  CHECK_FALSE(table.add("/a long key for a counter", 1).has_value());
  CHECK(value_of(table, "/k") == std::string(100, 'v'));
  CHECK(table.size() == 1);
  CHECK(table.erase("/k"));
  CHECK(table.set("/other", "fits"));
}

TEST_CASE("append cannot grow a value beyond its limit") {
  Table table(Table::Limits{1 << 20, 10});
  CHECK(table.append("/k", "12345678"));
  CHECK_FALSE(table.append("/k", "abc"));
  CHECK(table.append("/k", "ab"));
  CHECK(value_of(table, "/k") == "12345678ab");
}

}  // namespace muster
