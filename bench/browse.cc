// SPDX-License-Identifier: Apache-2.0
//
// Reading large logs by place, as the page and `muster logs` do, without HTTP in between: a log of
// 1 GB with ten million lines of 100 bytes, and 64 logs that are merged by time. Measured from the
// request to its answer in the loop, pool and queues included, with the file in the page cache.
//
//   tail         the last 200 lines, by a reader that has never seen the log
//   counted      from that first request until all lines have numbers, which goes on behind it
//   line, cold   a line in the middle while they do not, by a new reader each time
//   line         200 lines at random when they do: median and worst
//   time         the first line since a time, at random
//   merged       200 lines of 64 ranks, at random times
//
// browse_bench [--size MB] [--quick]; exits with 1 if something takes more than it may. --quick is
// for the tests: 100 MB, and ten times as long, so that only what is far off fails.

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "loop/loop.h"
#include "supervisor/browse/log_reader.h"
#include "supervisor/browse/merged.h"
#include "supervisor/logs/log_file.h"

namespace muster {

namespace {

constexpr int64_t kStart = 1'790'000'000'000'000;
constexpr int64_t kLine = 100;
constexpr int kRanks = 64;
constexpr int kRounds = 200;
constexpr Milliseconds kPatience{60'000};
bool all_good = true;
double patience = 1;

using Time = std::chrono::steady_clock;

double ms_since(Time::time_point begin) {
  return std::chrono::duration<double, std::milli>(Time::now() - begin).count();
}

// A log of `size` bytes that took an hour.
void write_log(const std::string& path, int64_t size) {
  auto file = LogFile::create_later(path, 0);
  file->keep_times(times_path(path));
  std::string block;
  int64_t lines = size / kLine;
  for (int64_t i = 0; i < lines;) {
    block.clear();
    for (int k = 0; k < 1'000 && i < lines; ++k, ++i) {
      char line[kLine + 1];
      std::snprintf(line, sizeof line, "line %012lld %s\n", static_cast<long long>(i),
                    std::string(81, 'x').c_str());
      block += line;
    }
    file->append(block, kStart + int64_t{3'600'000'000} * i / lines);
  }
}

void report(const char* what, std::vector<double> times, double allowed) {
  std::sort(times.begin(), times.end());
  double median = times[times.size() / 2], worst = times.back();
  bool good = worst <= allowed * patience;
  all_good = all_good && good;
  std::printf("%-12s median %8.2f ms   worst %8.2f ms   allowed %6.0f ms%s\n", what, median, worst,
              allowed, good ? "" : "   MISSED");
}

struct Bench {
  Loop loop;
  std::string folder;
  std::string path;
  int64_t size;
  std::mt19937_64 random{42};

  double ask(LogReader& reader, LogQuery::From from, int64_t position, LogPage& page) {
    LogQuery query;
    query.from = from;
    query.position = position;
    auto begin = Time::now();
    std::optional<Result<LogPage>> got;
    auto task = reader.read(path, query, [&](Result<LogPage> answer) { got = std::move(answer); });
    MUST(loop.run_until([&] { return got.has_value(); }, kPatience));
    double took = ms_since(begin);
    MUST(got->has_value());
    page = std::move(**got);
    return took;
  }

  int64_t lines() const { return size / kLine; }
  int64_t any(int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  }

  void first_looks() {
    std::vector<double> tails, jumps;
    LogPage page;
    for (int i = 0; i < 10; ++i) {
      LogReader reader(loop);
      tails.push_back(ask(reader, LogQuery::From::kTail, 0, page));
      MUST(page.lines.size() == 200 && page.size == size);
      LogReader other(loop);
      jumps.push_back(ask(other, LogQuery::From::kLine, lines() / 2, page));
      MUST(page.lines.front().offset == lines() / 2 * kLine);
    }
    report("tail", tails, 100);
    report("line, cold", jumps, 1'500);
  }

  void known_log() {
    LogReader reader(loop);
    LogPage page;
    auto begin = Time::now();
    while (page.total_lines < 0)
      ask(reader, LogQuery::From::kTail, 0, page);
    report("counted", {ms_since(begin)}, 3'000);
    MUST(page.total_lines == lines());
    std::vector<double> by_line, by_time;
    for (int i = 0; i < kRounds; ++i) {
      int64_t line = any(lines());
      by_line.push_back(ask(reader, LogQuery::From::kLine, line, page));
      MUST(page.lines.front().number == line && page.lines.front().offset == line * kLine);
      by_time.push_back(ask(reader, LogQuery::From::kTime, kStart + any(3'599'000'000), page));
    }
    report("line", by_line, 50);
    report("time", by_time, 50);
  }

  void merged() {
    std::vector<MergedLog> logs;
    for (int rank = 0; rank < kRanks; ++rank) {
      logs.push_back({rank, 0, folder + "/" + std::to_string(rank) + ".log"});
      write_log(logs.back().path, size / kRanks);
    }
    LogReader reader(loop);
    std::vector<double> times;
    for (int i = 0; i < kRounds; ++i) {
      MergedQuery query;
      query.place.time_us = kStart + any(3'599'000'000);
      if (i % 2 == 1) query.way = MergedQuery::Way::kBefore;
      auto begin = Time::now();
      std::optional<MergedPage> got;
      auto task = read_merged(reader, logs, query, [&](MergedPage page) { got = std::move(page); });
      MUST(loop.run_until([&] { return got.has_value(); }, kPatience));
      times.push_back(ms_since(begin));
    }
    report("merged", times, 100);
  }

  void run() {
    write_log(path, size);
    first_looks();
    known_log();
    std::filesystem::remove(path);
    merged();
  }
};

}  // namespace

}  // namespace muster

int main(int argc, char** argv) {
  int64_t megabytes = 1'000;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      megabytes = 100;
      muster::patience = 10;
    }
    if (std::strcmp(argv[i], "--size") == 0 && i + 1 < argc) megabytes = std::atoll(argv[++i]);
  }
  std::string folder = (std::filesystem::temp_directory_path() / "muster-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  {
    muster::Bench bench;
    bench.folder = folder;
    bench.path = folder + "/stdout.log";
    bench.size = megabytes * 1'000'000 / muster::kLine * muster::kLine;
    bench.run();
  }
  std::filesystem::remove_all(folder);
  return muster::all_good ? 0 : 1;
}
