// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/log_cursor.h"

#include <doctest/doctest.h>

#include <limits>

namespace muster {

TEST_CASE("a cursor comes back as it was") {
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const auto& offsets : std::vector<std::vector<std::optional<int64_t>>>{
           {0}, {std::nullopt}, {35, 36, std::nullopt, most}, {std::nullopt, std::nullopt, 7}}) {
    const std::string text = encode_cursor({3, offsets});
    CAPTURE(text);
    const std::optional<LogCursor> back = decode_cursor(text);
    REQUIRE(back);
    CHECK(back->attempt == 3);
    CHECK(back->offsets == offsets);
  }
  CHECK(encode_cursor({0, {35, std::nullopt, 36}}) == "0-z..10");
}

TEST_CASE("what is no cursor is none") {
  for (const char* text : {"", "0", "-", "-1", "x-1", "0-!", "0--1", "0-1.?", "0-1 ", "0- 1",
                           "0-zzzzzzzzzzzzzzzz", "99999999999-1"}) {
    CAPTURE(text);
    CHECK_FALSE(decode_cursor(text));
  }
  CHECK_FALSE(decode_cursor("0-" + std::string(20'000, '.')));
}

}  // namespace muster
