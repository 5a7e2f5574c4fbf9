// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/screen_text.h"

#include <doctest/doctest.h>

namespace muster {

TEST_CASE("text is clipped by characters, not by bytes or colours") {
  CHECK(clip_to_columns("\xc3\xa4\xc3\xb6x", 2) == "\xc3\xa4\xc3\xb6");
  CHECK(clip_to_columns("\x1b[31mred\x1b[0m", 3) == "\x1b[31mred\x1b[0m");
  CHECK(clip_to_columns("\x1b[31mred", 2) == "\x1b[31mre");
  CHECK(clip_to_columns("abc", 0).empty());
  CHECK(clip_to_columns("abc", 3) == "abc");
}

TEST_CASE("colours stay and cursor moves go") {
  CHECK(without_cursor_moves("a\x1b[1;31mb\x1b[0m\x1b[Kc") == "a\x1b[1;31mb\x1b[0m\x1b[Kc");
  CHECK(without_cursor_moves("a\x1b[Ab\x1b[2;5Hc\x1b[2Jd\x1b[?25le") == "abcde");
  CHECK(without_cursor_moves("\x1bMx\x1b"
                             "7y\x1b"
                             "8z\x1b"
                             "c") == "xyz");
  CHECK(without_cursor_moves("\x1b]8;;http://a\x1b\\link") == "\x1b]8;;http://a\x1b\\link");
}

TEST_CASE("broken sequences pass") {
  CHECK(without_cursor_moves("\x1b") == "\x1b");
  CHECK(without_cursor_moves("x\x1b[12") == "x\x1b[12");
  CHECK(without_cursor_moves("x\x1b[1\n") == "x\x1b[1\n");
}

}  // namespace muster
