// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/json_out.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

using muster::JsonOut;

namespace {

std::string text_of(const std::string& value) {
  std::string to;
  JsonOut(to).value(value);
  return to;
}

void tell(JsonOut& out) {
  out.begin_object();
  out.field("name", "a");
  out.key("rows");
  out.begin_array();
  out.begin_row();
  out.field("rank", 0);
  out.key("of");
  out.begin_array();
  out.value(1);
  out.value(2);
  out.end_array();
  out.end_object();
  out.begin_row();
  out.end_object();
  out.end_array();
  out.key("none");
  out.begin_array();
  out.end_array();
  out.end_object();
}

}  // namespace

TEST_CASE("dense JSON has no blanks") {
  std::string to;
  JsonOut out(to);
  tell(out);
  CHECK(to == R"({"name":"a","rows":[{"rank":0,"of":[1,2]},{}],"none":[]})");
}

TEST_CASE("for people it is indented, with a row on one line") {
  std::string to;
  JsonOut out(to, JsonOut::Layout::kLines);
  tell(out);
  CHECK(to == R"({
  "name": "a",
  "rows": [
    {"rank": 0, "of": [1, 2]},
    {}
  ],
  "none": []
})");
}

TEST_CASE("every byte of a text comes back from a parser") {
  std::string all;
  for (int c = 1; c < 0x80; ++c)
    all += static_cast<char>(c);
  all += std::string("\0", 1) + "b\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x8E\x89 \xC2\x9B";
  CHECK(nlohmann::json::parse(text_of(all)).get<std::string>() == all);
}

TEST_CASE("no control character is in the text itself") {
  const std::string text = text_of("\x1B[31m\x7F\x07\xC2\x9B\r\n");
  CHECK(text == R"("\u001b[31m\u007f\u0007\u009b\r\n")");
}

TEST_CASE("what is not UTF-8 is replaced") {
  CHECK(text_of("a\xFF"
                "b\xC3") ==
        "\"a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD\"");
}

TEST_CASE("numbers are as JSON knows them") {
  std::string to;
  JsonOut out(to);
  out.begin_array();
  out.value(std::numeric_limits<int64_t>::min());
  out.value(0.1);
  out.value(1e300);
  out.value(std::nan(""));
  out.value(std::numeric_limits<double>::infinity());
  out.value(true);
  out.value(std::optional<int>());
  out.value(std::optional<double>(2.5));
  out.end_array();
  CHECK(to == "[-9223372036854775808,0.1,1e+300,null,null,true,null,2.5]");
}

TEST_CASE("JSON that is there already is taken as it is") {
  std::string to;
  JsonOut out(to);
  out.begin_array();
  out.raw("{\"a\":1}");
  out.raw("2");
  out.end_array();
  CHECK(to == "[{\"a\":1},2]");
}
