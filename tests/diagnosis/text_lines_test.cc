// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/text_lines.h"

#include <doctest/doctest.h>

namespace muster {

using Lines = std::vector<std::string>;

TEST_CASE("escape sequences and control bytes do not reach the reader") {
  CHECK(clean_line("\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain\x1b(B") == "red plainB");
  CHECK(clean_line(std::string_view("a\0b\x7f\x01", 5)) == "ab");
  CHECK(clean_line("tab\tstays") == "tab\tstays");
  CHECK(clean_line("\xC2\x9B"
                   "31mx") == "31mx");
  CHECK(clean_line("cut \x1b[") == "cut ");
  CHECK(clean_line("cut \x1b") == "cut ");
}

TEST_CASE("of a progress line the last state is kept") {
  CHECK(clean_line("10%\r20%\r30%") == "30%");
  CHECK(clean_line("windows\r") == "windows");
  CHECK(clean_line("done\r\r") == "done");
}

TEST_CASE("bytes that are no UTF-8 are replaced one by one") {
  CHECK(valid_utf8("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80") ==
        "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80");
  CHECK(valid_utf8("\xFF") == "\xEF\xBF\xBD");
  CHECK(valid_utf8("a\xC3") == "a\xEF\xBF\xBD");
  CHECK(valid_utf8("\xC0\xAF") == "\xEF\xBF\xBD\xEF\xBF\xBD");                  // overlong
  CHECK(valid_utf8("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // surrogate
  CHECK(valid_utf8("\xF4\x90\x80\x80").size() == 12);                           // too large
}

TEST_CASE("lines are split at newlines and a last one without newline counts") {
  CHECK(clean_lines("a\n\nb") == Lines{"a", "", "b"});
  CHECK(clean_lines("a\n") == Lines{"a"});
  CHECK(clean_lines("").empty());
}

TEST_CASE("trailing blank lines are no last lines") {
  CHECK(last_lines({"a", "b", "", "  "}, 5) == Lines{"a", "b"});
  CHECK(last_lines({"a", "", "b"}, 2) == Lines{"b"});
  CHECK(last_lines({"", " "}, 2).empty());
}

TEST_CASE("a long line is cut between characters") {
  CHECK(cut_line("hello", 5) == "hello");
  CHECK(cut_line("hello!", 5) == "hell\xE2\x80\xA6");
  CHECK(cut_line("\xC3\xBC\xC3\xBC\xC3\xBC", 3) == "\xC3\xBC\xC3\xBC\xC3\xBC");
  CHECK(cut_line("\xC3\xBC\xC3\xBC\xC3\xBC", 2) == "\xC3\xBC\xE2\x80\xA6");
  CHECK(cut_line("", 1) == "");
}

}  // namespace muster
