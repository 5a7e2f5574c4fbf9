// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/log_merge.h"

#include <doctest/doctest.h>

namespace muster {

namespace {

ShownLine line(int rank, int64_t time_us, const std::string& text) {
  ShownLine made;
  made.log = {0, rank, "stdout"};
  made.time_us = time_us;
  made.text = text;
  return made;
}

std::string texts(const std::vector<ShownLine>& lines) {
  std::string out;
  for (const ShownLine& line : lines)
    out += line.text;
  return out;
}

}  // namespace

TEST_CASE("lines of several logs come in the order of their times") {
  LogMerge merge(2);
  CHECK(merge.needs() == std::vector<size_t>{0, 1});
  merge.add(0, {line(0, 10, "a"), line(0, 30, "c")});
  CHECK(merge.take().empty());  // the other one could be earlier
  merge.add(1, {line(1, 20, "b"), line(1, 40, "d")});
  CHECK(texts(merge.take()) == "abc");
  CHECK(merge.needs() == std::vector<size_t>{0});
  merge.end(0);
  CHECK(texts(merge.take()) == "d");
  CHECK_FALSE(merge.done());
  merge.end(1);
  CHECK(merge.done());
}

TEST_CASE("nothing is said while a log could still have an earlier line") {
  LogMerge merge(3);
  merge.add(0, {line(0, 10, "a")});
  merge.end(1);
  CHECK(merge.take().empty());
  merge.end(2);
  CHECK(texts(merge.take()) == "a");
}

TEST_CASE("lines of one log stay in order, whatever their clock did") {
  LogMerge merge(2);
  merge.add(0, {line(0, 50, "a"), line(0, 20, "b"), line(0, 0, "c"), line(0, 70, "e")});
  merge.add(1, {line(1, 60, "d")});
  merge.end(0);
  merge.end(1);
  CHECK(texts(merge.take()) == "abcde");
}

TEST_CASE("lines without times stand with those before them") {
  LogMerge merge(2);
  merge.add(0, {line(0, 0, "a"), line(0, 0, "b")});
  merge.add(1, {line(1, 5, "c")});
  merge.end(0);
  merge.end(1);
  CHECK(texts(merge.take()) == "abc");
}

TEST_CASE("of equal times the first log's line is first") {
  LogMerge merge(3);
  for (size_t i : {2, 0, 1}) {
    merge.add(i, {line(static_cast<int>(i), 7, std::to_string(i))});
    merge.end(i);
  }
  CHECK(texts(merge.take()) == "012");
  CHECK(merge.done());
}

}  // namespace muster
