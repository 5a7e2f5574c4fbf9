// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/line_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

namespace muster {

namespace {

std::string random_lines(std::mt19937& random, size_t size, int longest) {
  std::string text;
  while (text.size() < size)
    text += std::string(random() % static_cast<unsigned>(longest), 'x') + "\n";
  return text;
}

}  // namespace

TEST_CASE("every point is a line start with its number") {
  std::mt19937 random(3);
  std::string text = random_lines(random, 3 << 20, 2'000);
  LineIndex index;
  for (size_t at = 0; at < text.size();) {
    size_t count = std::min<size_t>(1 + random() % 100'000, text.size() - at);
    index.feed(std::string_view(text).substr(at, count));
    at += count;
  }
  CHECK(index.counted_to() == static_cast<int64_t>(text.size()));
  CHECK(index.lines() == std::count(text.begin(), text.end(), '\n'));
  for (int64_t offset = 0; offset < index.counted_to(); offset += 1'777) {
    auto point = index.before_offset(offset);
    REQUIRE(point.has_value());
    CHECK(point->offset <= offset);
    CHECK(offset - point->offset <= LineIndex::kSpacing + 2'000);
    CHECK((point->offset == 0 || text[static_cast<size_t>(point->offset) - 1] == '\n'));
    CHECK(point->number == std::count(text.begin(), text.begin() + point->offset, '\n'));
    auto same = index.before_line(point->number);
    REQUIRE(same.has_value());
    CHECK(same->offset == point->offset);
  }
  CHECK_FALSE(index.before_offset(index.counted_to() + 1).has_value());
}

TEST_CASE("an index of ten million lines stays small") {
  LineIndex index;
  std::string block;
  for (int i = 0; i < 10'000; ++i)
    block += std::string(99, 'x') + "\n";
  for (int i = 0; i < 1'000; ++i)
    index.feed(block);
  CHECK(index.lines() == 10'000'000);
  auto point = index.before_line(7'654'321);
  REQUIRE(point.has_value());
  CHECK(point->offset == point->number * 100);
  // A 4,096th of the log at most has to be read to find a line.
  CHECK((7'654'321 - point->number) * 100 < 1'000'000'000 / 1'024);
}

TEST_CASE("a line longer than the spacing is no harm") {
  LineIndex index;
  index.feed("a\n" + std::string(1 << 20, 'x'));
  index.feed("\nb\n");
  CHECK(index.lines() == 3);
  auto point = index.before_line(2);
  REQUIRE(point.has_value());
  CHECK(point->offset == 2 + (1 << 20) + 1);
  CHECK(point->number == 2);
}

TEST_CASE("behind a hole lines have numbers when one place is known") {
  LineIndex index(1'000'000);
  index.feed("a\nb\nc\n");
  CHECK(index.lines() == -1);
  CHECK(index.before_offset(1'000'004)->number == -1);
  CHECK_FALSE(index.before_line(0).has_value());
  index.settle(503);
  CHECK(index.lines() == 503);
  CHECK(index.before_offset(1'000'004)->number == 500);
  CHECK(index.before_line(501)->number == 500);
  CHECK_FALSE(index.before_line(499).has_value());
}

TEST_CASE("what is cut off is forgotten, the rest is counted on") {
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text += "0123456\n";
  LineIndex index;
  index.feed(text);
  index.cut_off(400'000);
  CHECK(index.counted_to() <= 400'000);
  CHECK(index.lines() == index.counted_to() / 8);
  index.feed(std::string_view(text).substr(static_cast<size_t>(index.counted_to())));
  CHECK(index.lines() == 100'000);
}

}  // namespace muster
