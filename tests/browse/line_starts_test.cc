// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/line_starts.h"

#include <doctest/doctest.h>

#include <string>

namespace muster {

namespace {

int64_t start_of(const std::string& text, int64_t end, LineStarts::Limits limits, size_t step) {
  LineStarts starts(end, limits);
  while (starts.position() > 0) {
    size_t count = std::min<size_t>(step, static_cast<size_t>(starts.position()));
    size_t begin = static_cast<size_t>(starts.position()) - count;
    if (!starts.feed_before(std::string_view(text).substr(begin, count))) return starts.start();
  }
  starts.at_begin();
  return starts.start();
}

}  // namespace

TEST_CASE("the n-th line from the end is found, however the bytes are split") {
  std::string text = "one\ntwo\n\nthree\nfour";
  for (size_t step : {1, 2, 3, 7, 100}) {
    auto start = [&](int64_t end, int64_t lines) {
      return start_of(text, end, {lines, 1'000, 1'000}, step);
    };
    CHECK(start(19, 1) == 15);
    CHECK(start(19, 2) == 9);
    CHECK(start(19, 3) == 8);
    CHECK(start(19, 4) == 4);
    CHECK(start(19, 5) == 0);
    CHECK(start(19, 50) == 0);
    CHECK(start(15, 1) == 9);
    CHECK(start(9, 1) == 8);
    CHECK(start(8, 1) == 4);
    CHECK(start(0, 1) == 0);
  }
}

TEST_CASE("lines count with what is given of them") {
  std::string text = std::string(100, 'x') + "\n" + std::string(1'000, 'y') + "\nzz\n";
  int64_t end = static_cast<int64_t>(text.size());
  CHECK(start_of(text, end, {10, 15, 10}, 64) == 101);
  CHECK(start_of(text, end, {10, 25, 10}, 64) == 0);
  CHECK(start_of(text, end, {10, 5, 1'000}, 64) == 1'102);
  CHECK(start_of(text, 1'102, {10, 5, 1'000}, 64) == 101);
}

TEST_CASE("a jump over a hole goes on with the lines before it") {
  LineStarts starts(1'006, {3, 1'000, 1'000});
  CHECK(starts.feed_before("ab\ncd\n"));
  CHECK(starts.position() == 1'000);
  CHECK(starts.at_begin());
  CHECK(starts.start() == 1'000);
  starts.jump(8);
  CHECK_FALSE(starts.feed_before("one\ntwo\n"));
  CHECK(starts.start() == 4);
}

}  // namespace muster
