// SPDX-License-Identifier: Apache-2.0
#include "loop/sse.h"

#include <doctest/doctest.h>

namespace muster {

TEST_SUITE("sse") {
  TEST_CASE("a message is its fields, one a line, and an empty line") {
    CHECK(sse_text({"change", "7-12", R"({"a": 1})"}) ==
          "event: change\nid: 7-12\ndata: {\"a\": 1}\n\n");
    CHECK(sse_text({"", "", "x"}) == "data: x\n\n");
    CHECK(sse_text({"end", "", ""}) == "event: end\ndata: \n\n");
  }

  TEST_CASE("each line of the data is a field of its own, whatever ends it") {
    CHECK(sse_text({"", "", "a\nb\r\nc\rd"}) == "data: a\ndata: b\ndata: c\ndata: d\n\n");
    CHECK(sse_text({"", "", "a\n"}) == "data: a\ndata: \n\n");
    CHECK(sse_text({"", "", "\n\nid: 9\n\n"}) == "data: \ndata: \ndata: id: 9\ndata: \ndata: \n\n");
  }

  TEST_CASE("no value can begin a field of its own") {
    CHECK(sse_text({"a\nid: 1", std::string_view("2\r\0", 3), "x"}) ==
          "event: a id: 1\nid: 2  \ndata: x\n\n");
    CHECK(sse_comment("a\n\ndata: x") == ": a  data: x\n\n");
  }

  TEST_CASE("a browser can be told when to come again") {
    CHECK(sse_retry(1500) == "retry: 1500\n\n");
  }
}

}  // namespace muster
