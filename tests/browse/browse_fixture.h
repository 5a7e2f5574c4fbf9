// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "logs/temp_dir.h"
#include "loop/loop_test.h"
#include "supervisor/browse/log_reader.h"

namespace muster {

inline std::string numbered_line(int64_t i) {
  char line[32];
  std::snprintf(line, sizeof line, "line %010lld\n", static_cast<long long>(i));
  return line;
}

inline std::string numbered_lines(int64_t from, int64_t to) {
  std::string text;
  for (int64_t i = from; i < to; ++i)
    text += numbered_line(i);
  return text;
}

inline LogQuery log_query(LogQuery::From from, int64_t position, int64_t lines) {
  LogQuery query;
  query.from = from;
  query.position = position;
  query.max_lines = lines;
  return query;
}

// A folder with one log and a reader of it.
struct BrowseTest : LoopTest {
  using From = LogQuery::From;

  TempDir dir;
  std::string path = dir.path + "/stdout.log";
  LogReader reader{loop};

  Result<LogPage> try_read(LogQuery query) {
    std::optional<Result<LogPage>> got;
    auto task = reader.read(path, query, [&](Result<LogPage> page) { got = std::move(page); });
    REQUIRE(run_until([&] { return got.has_value(); }));
    return *got;
  }
  LogPage read(LogQuery query) {
    Result<LogPage> page = try_read(query);
    REQUIRE(page.has_value());
    return *page;
  }
  LogPage read(From from, int64_t position, int64_t lines) {
    return read(log_query(from, position, lines));
  }
  LogPage tail(int64_t lines) { return read(From::kTail, 0, lines); }

  // Reads until the lines of the whole log were counted.
  LogPage counted_tail(int64_t lines) {
    LogPage page;
    REQUIRE(run_until([&] { return !reader_busy(); }));
    for (int i = 0; i < 1'000; ++i) {
      page = tail(lines);
      if (page.total_lines >= 0) break;
      int64_t before = reader.gate().pieces();
      run_until([&] { return reader.gate().pieces() > before + 3; }, Milliseconds(100));
    }
    return page;
  }
  bool reader_busy() const { return loop.has_requests(); }

  void append(const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::app) << text;
  }
};

inline std::vector<std::string> texts(const LogPage& page) {
  std::vector<std::string> all;
  for (const LogLine& line : page.lines)
    all.push_back(line.text);
  return all;
}

}  // namespace muster
