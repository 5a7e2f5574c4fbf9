// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/merged.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "browse/browse_fixture.h"
#include "supervisor/logs/log_file.h"

namespace muster {

namespace {

constexpr int64_t kStart = 1'790'000'000'000'000;

struct MergedTest : BrowseTest {
  std::vector<MergedLog> logs;
  std::vector<MergedLine> all;  // that were written, in order

  // Each of `ranks` logs gets lines at random times, many of them at the same.
  void write_logs(int ranks, int lines) {
    std::mt19937 random(23);
    for (int rank = 0; rank < ranks; ++rank) {
      MergedLog log{rank, rank % 2, dir.path + "/" + std::to_string(rank) + ".log"};
      auto file = LogFile::create_later(log.path, 0);
      file->keep_times(times_path(log.path));
      int64_t time = kStart, offset = 0, noted = 0;
      for (int i = 0; i < lines; ++i) {
        MergedLine line;
        line.rank = rank;
        line.stream = log.stream;
        line.line.text = "rank " + std::to_string(rank) + " line " + std::to_string(i);
        file->append(line.line.text + "\n", time);
        if (i == 0 || time - noted >= TimesEncoder::kLeastInterval) noted = time;
        line.line.time_us = noted;
        line.line.offset = offset;
        offset += static_cast<int64_t>(line.line.text.size()) + 1;
        all.push_back(line);
        if (random() % 3 == 0) time += 100'000 * static_cast<int64_t>(random() % 4);
      }
      logs.push_back(log);
    }
    std::sort(all.begin(), all.end(),
              [](const MergedLine& a, const MergedLine& b) { return a.place() < b.place(); });
  }

  MergedPage read_page(MergedQuery::Way way, MergedPlace place, int64_t lines) {
    MergedQuery query;
    query.way = way;
    query.place = place;
    query.max_lines = lines;
    std::optional<MergedPage> got;
    auto task = read_merged(reader, logs, query, [&](MergedPage page) { got = std::move(page); });
    REQUIRE(run_until([&] { return got.has_value(); }));
    return *got;
  }

  void check_lines(const std::vector<MergedLine>& lines, size_t from) {
    REQUIRE(from + lines.size() <= all.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      REQUIRE(lines[i].line.text == all[from + i].line.text);
      REQUIRE(lines[i].place() == all[from + i].place());
    }
  }
};

constexpr auto kAfter = MergedQuery::Way::kAfter;
constexpr auto kBefore = MergedQuery::Way::kBefore;
constexpr MergedPlace kEnd{INT64_MAX, 0, 0, 0};

}  // namespace

TEST_CASE_FIXTURE(MergedTest, "page by page every line comes once, in order") {
  write_logs(7, 300);
  size_t seen = 0;
  MergedPlace place{0, -1, -1, -1};
  while (true) {
    MergedPage page = read_page(kAfter, place, 97);
    check_lines(page.lines, seen);
    seen += page.lines.size();
    CHECK(page.more == (seen < all.size()));
    if (!page.more) break;
    REQUIRE(page.lines.size() == 97);
    place = page.lines.back().place();
  }
  CHECK(seen == all.size());
  CHECK(read_page(kAfter, place, 97).lines.size() == all.size() % 97);
}

TEST_CASE_FIXTURE(MergedTest, "backwards it is the same") {
  write_logs(7, 300);
  size_t left = all.size();
  MergedPlace place = kEnd;
  while (left > 0) {
    MergedPage page = read_page(kBefore, place, 101);
    REQUIRE(!page.lines.empty());
    left -= page.lines.size();
    check_lines(page.lines, left);
    CHECK(page.more == (left > 0));
    place = page.lines.front().place();
  }
  CHECK(read_page(kBefore, place, 10).lines.empty());
}

TEST_CASE_FIXTURE(MergedTest, "from any line on and before any line") {
  write_logs(5, 60);
  for (size_t i = 0; i < all.size(); i += 7) {
    MergedPage page = read_page(kAfter, all[i].place(), 20);
    CHECK(page.lines.size() == std::min<size_t>(20, all.size() - i - 1));
    check_lines(page.lines, i + 1);
    page = read_page(kBefore, all[i].place(), 20);
    CHECK(page.lines.size() == std::min<size_t>(20, i));
    check_lines(page.lines, i - page.lines.size());
  }
}

TEST_CASE_FIXTURE(MergedTest, "a time is a place before all lines of that time") {
  write_logs(4, 100);
  int64_t time = all[200].line.time_us;
  size_t first = 0;
  while (all[first].line.time_us < time)
    ++first;
  check_lines(read_page(kAfter, {time, -1, -1, -1}, 50).lines, first);
  MergedPage page = read_page(kBefore, {time, -1, -1, -1}, 50);
  REQUIRE(page.lines.size() == 50);
  check_lines(page.lines, first - 50);
}

TEST_CASE_FIXTURE(MergedTest, "a log without times is named, one that does not exist is not") {
  write_logs(2, 10);
  write_file(dir.path + "/plain.log", "no times\n");
  logs.push_back({9, 0, dir.path + "/plain.log"});
  logs.push_back({10, 0, dir.path + "/missing.log"});
  MergedPage page = read_page(kAfter, {0, -1, -1, -1}, 100);
  CHECK(page.lines.size() == 20);
  CHECK(page.untimed == std::vector<int>{9});
}

TEST_CASE_FIXTURE(MergedTest, "a last line without newline is the last of its log") {
  write_logs(2, 10);
  auto file = LogFile::create_later(dir.path + "/open.log", 0);
  file->keep_times(dir.path + "/open.times");
  file->append("whole\nopen", kStart + int64_t{3'600'000'000});
  logs.push_back({5, 0, dir.path + "/open.log"});
  MergedPage page = read_page(kBefore, kEnd, 3);
  REQUIRE(page.lines.size() == 3);
  CHECK(page.lines[2].line.text == "open");
  CHECK_FALSE(page.lines[2].line.ended);
  page = read_page(kAfter, page.lines[1].place(), 3);
  REQUIRE(page.lines.size() == 1);
  CHECK(page.lines[0].line.text == "open");
}

TEST_CASE_FIXTURE(MergedTest, "a page of text keeps its limit") {
  write_logs(3, 200);
  MergedQuery query;
  query.max_bytes = 1'000;
  std::optional<MergedPage> got;
  auto task = read_merged(reader, logs, query, [&](MergedPage page) { got = std::move(page); });
  REQUIRE(run_until([&] { return got.has_value(); }));
  CHECK(got->more);
  CHECK(got->lines.size() < 100);
  check_lines(got->lines, 0);
}

TEST_CASE_FIXTURE(MergedTest, "more logs than the limit: the first ones are read") {
  write_logs(1, 5);
  logs.resize(kMaxMergedLogs, logs[0]);
  logs.push_back({1, 0, dir.path + "/late.log"});
  auto file = LogFile::create_later(dir.path + "/late.log", 0);
  file->keep_times(dir.path + "/late.times");
  file->append("late\n", 1);
  MergedPage page = read_page(kAfter, {0, -1, -1, -1}, 5);
  CHECK(std::all_of(page.lines.begin(), page.lines.end(),
                    [](const MergedLine& line) { return line.rank == 0; }));
}

}  // namespace muster
