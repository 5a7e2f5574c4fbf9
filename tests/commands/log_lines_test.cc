// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/log_lines.h"

#include <doctest/doctest.h>

#include "supervisor/commands/line_filter.h"

namespace muster {

TEST_CASE("a page is read as the API writes it") {
  Result<ShownPage> page = parse_page(
      R"({"attempt":1,"rank":3,"stream":"stderr","exists":true,"growing":false,"offset":4,"end":9,)"
      R"("size":20,"total_lines":-1,"hole":[5,8],"lines":[[4,1,77,2,true,"ab"],[7,2,0,9,false,"c",3]]})");
  REQUIRE(page);
  CHECK(page->log == LogName{1, 3, "stderr"});
  CHECK(page->exists);
  CHECK(page->end == 9);
  CHECK_FALSE(page->reaches_end());
  REQUIRE(page->hole);
  CHECK(page->hole->second == 8);
  REQUIRE(page->lines.size() == 2);
  CHECK(page->lines[0].text == "ab");
  CHECK(page->lines[0].time_us == 77);
  CHECK_FALSE(page->lines[1].ended);
  CHECK(page->lines[1].log.rank == 3);
}

TEST_CASE("what is no page is an error and never more") {
  for (const char* text : {"", "[]", "{}", "null", R"({"lines":3})", R"({"lines":[[1]]})",
                           R"({"lines":[["a",1,2,3,true,"x"]]})", R"({"lines":[[1,1,1,1,1,"x"]]})",
                           R"({"lines":[[1,1,1,1,true,1]]})"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_page(text));
  }
  // Of the wrong type is as good as missing.
  CHECK(parse_page(R"({"rank":"x","end":[],"hole":[1],"lines":[]})"));
}

TEST_CASE("a hit of a search is read with what stands around it, in either form") {
  Result<SearchAnswer> answer = parse_search_answer(
      R"({"hit":{"attempt":0,"rank":2,"stream":"stdout","offset":10,"number":5,"time_us":9,)"
      R"("text":"aäb","matches":[[1,2],["x"],[2,3]],"before":["one"],)"
      R"("after":[[20,6,0,3,true,"two"]]}})");
  REQUIRE(answer);
  REQUIRE(answer->hit);
  CHECK(answer->hit->line.log.rank == 2);
  CHECK(answer->hit->before[0].text == "one");
  CHECK(answer->hit->after[0].offset == 20);
  using Match = std::pair<size_t, size_t>;
  CHECK(answer->hit->matches == std::vector<Match>{{1, 3}, {3, 4}});
  CHECK_FALSE(answer->done);

  answer = parse_search_answer(R"({"done":{"hits":1,"truncated":true,"bytes":3}})");
  REQUIRE(answer);
  CHECK(answer->done);
  CHECK(answer->truncated);
  answer = parse_search_answer(R"({"done":{"unreachable":["node-b"],"troubles":["no disk",3]}})");
  REQUIRE(answer);
  CHECK(answer->notes == std::vector<std::string>{"node-b could not be asked", "no disk"});
  answer = parse_search_answer(R"({"error":{"message":"gone"}})");
  REQUIRE(answer);
  CHECK(answer->error == "gone");
  CHECK_FALSE(parse_search_answer("nonsense"));
}

TEST_CASE("UTF-16 units are counted as a browser does") {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z";  // a ä € smiley z
  CHECK(byte_of_utf16(text, 0) == 0);
  CHECK(byte_of_utf16(text, 1) == 1);
  CHECK(byte_of_utf16(text, 2) == 3);
  CHECK(byte_of_utf16(text, 3) == 6);
  CHECK(byte_of_utf16(text, 5) == 10);
  CHECK(byte_of_utf16(text, 6) == 11);
  CHECK(byte_of_utf16(text, 99) == text.size());
}

TEST_CASE("lines that come are chosen by an expression, a text, in either case") {
  CommandOptions options;
  REQUIRE(LineFilter::make(options));
  CHECK(LineFilter::make(options)->passes("anything"));
  options.grep = "a.c";
  CHECK(LineFilter::make(options)->passes("xabcx"));
  CHECK_FALSE(LineFilter::make(options)->passes("ABC"));
  options.ignore_case = true;
  CHECK(LineFilter::make(options)->passes("ABC"));
  options.fixed = true;
  CHECK_FALSE(LineFilter::make(options)->passes("abc"));
  CHECK(LineFilter::make(options)->passes("xA.cx"));
  options.fixed = false;
  options.grep = "(";
  Result<LineFilter> wrong = LineFilter::make(options);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("--grep '('") == 0);
}

}  // namespace muster
