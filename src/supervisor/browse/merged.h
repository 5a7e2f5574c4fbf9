// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "supervisor/browse/log_page.h"
#include "supervisor/browse/log_reader.h"

namespace muster {

// The order in which lines of several logs are shown: by time, and because many lines have the same
// (stdout.times is coarse) by log and offset, so that it is total and any line is a place in it.
struct MergedPlace {
  int64_t time_us = 0;
  int rank = -1;
  int stream = -1;
  int64_t offset = -1;

  bool operator==(const MergedPlace&) const = default;
  bool operator<(const MergedPlace& other) const { return key() < other.key(); }
  bool operator>(const MergedPlace& other) const { return other < *this; }

 private:
  std::tuple<int64_t, int, int, int64_t> key() const { return {time_us, rank, stream, offset}; }
};

struct MergedLog {
  int rank = 0;
  int stream = 0;  // 0 stdout, 1 stderr
  std::string path;
};

struct MergedQuery {
  enum class Way { kAfter, kBefore };
  Way way = Way::kAfter;
  MergedPlace place;  // the lines behind it, or before it, those next to it
  int64_t max_lines = 200;
  int64_t max_bytes = int64_t{1} << 20;
  int64_t max_line = 16 << 10;
};

struct MergedLine {
  int rank = 0;
  int stream = 0;
  LogLine line;
  MergedPlace place() const { return {line.time_us, rank, stream, line.offset}; }
};

struct MergedPage {
  std::vector<MergedLine> lines;  // in order
  bool more = false;              // there are lines beyond them in the way that was asked for
  std::vector<int> untimed;       // ranks with a log that has no times, which is left out
};

// Reads that page from logs of this machine, off the loop, in pieces. Of more than kMaxMergedLogs
// the first ones are read.
constexpr size_t kMaxMergedLogs = 1'024;
constexpr int64_t kMaxMergedLines = 5'000;
std::unique_ptr<BrowseTask> read_merged(LogReader& reader, std::vector<MergedLog> logs,
                                        MergedQuery query, std::function<void(MergedPage)> on_done);

}  // namespace muster
