// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/line_cutter.h"

#include <doctest/doctest.h>

#include <random>

namespace muster {

namespace {

constexpr LineCutter::Limits kWide{1'000'000, int64_t{1} << 40, 1 << 20};

}  // namespace

TEST_CASE("however bytes are split the lines are the same") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += "ab\r\n\n\0x"[random() % 7];
    LineCutter::Limits limits{1'000, 1'000, static_cast<int64_t>(1 + random() % 20)};
    LineCutter whole(10, 3, limits);
    whole.feed(text);
    LineCutter split(10, 3, limits);
    for (size_t at = 0; at < text.size();) {
      size_t count = 1 + random() % 30;
      if (!split.feed(std::string_view(text).substr(at, count))) break;
      at += count;
    }
    CHECK(whole.next() == split.next());
    whole.end_open();
    split.end_open();
    auto a = whole.take(), b = split.take();
    REQUIRE(a.size() == b.size());
    int64_t offset = 10;
    for (size_t i = 0; i < a.size(); ++i) {
      CHECK(a[i].text == b[i].text);
      CHECK(a[i].size == b[i].size);
      CHECK(a[i].skipped == b[i].skipped);
      CHECK(a[i].offset == offset);
      CHECK(a[i].number == 3 + static_cast<int64_t>(i));
      std::string_view line = std::string_view(text).substr(static_cast<size_t>(offset - 10),
                                                            static_cast<size_t>(a[i].size));
      CHECK(line.substr(static_cast<size_t>(a[i].skipped), a[i].text.size()) == a[i].text);
      CHECK(static_cast<int64_t>(a[i].text.size()) <= limits.max_line);
      offset += a[i].size + 1;
    }
  }
}

TEST_CASE("a full page stops at a line's start and goes on there") {
  LineCutter cutter(0, 0, {2, 1'000, 100});
  CHECK_FALSE(cutter.feed("a\nb\nc\n"));
  CHECK(cutter.next() == 4);
  CHECK(cutter.take().size() == 2);
  CHECK(cutter.position() == 4);
  CHECK(cutter.feed("c\n"));
  auto lines = cutter.take();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].text == "c");
  CHECK(lines[0].number == 2);
}

TEST_CASE("a line that does not fit comes whole in the next page") {
  LineCutter cutter(0, 0, {10, 5, 100});
  CHECK(cutter.feed("abc\nde"));
  CHECK_FALSE(cutter.feed("f\n"));
  CHECK(cutter.next() == 4);
  CHECK(cutter.take().size() == 1);
  CHECK(cutter.position() == 4);
  CHECK(cutter.feed("def\n"));
  CHECK(cutter.take()[0].text == "def");
}

TEST_CASE("a hole ends the line before it") {
  LineCutter cutter(0, 0, kWide);
  cutter.feed("one\ntw");
  cutter.jump(1'000, 70);
  cutter.feed("o\nthree\n");
  auto lines = cutter.take();
  REQUIRE(lines.size() == 4);
  CHECK(lines[1].text == "tw");
  CHECK(lines[1].ended);
  CHECK(lines[2].text == "o");
  CHECK(lines[2].offset == 1'000);
  CHECK(lines[2].number == 70);
  CHECK(lines[3].number == 71);
}

TEST_CASE("a skipped line's rest is not seen") {
  LineCutter cutter(500, -1, kWide);
  cutter.skip_line();
  cutter.feed("the end of som");
  CHECK_FALSE(cutter.has_open());
  cutter.feed("ething\nline\n");
  auto lines = cutter.take();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].text == "line");
  CHECK(lines[0].offset == 521);
}

TEST_CASE("a carriage return before the newline does not make a progress bar") {
  LineCutter cutter(0, 0, {10, 1'000, 4});
  cutter.feed("abcdefgh\r\n");
  auto lines = cutter.take();
  CHECK(lines[0].text == "abcd");
  CHECK(lines[0].skipped == 0);
}

}  // namespace muster
