// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/status/rank_sample.h"

namespace muster {

// samples.jsonl in the run's folder (docs/logs.md): what was measured of all ranks, a line each
// time, thinned as the run grows older.

// How long after a sample the next one is kept.
constexpr int64_t kLeastHistoryIntervalUs = 10'000'000;
int64_t history_interval_us(int64_t age_us, size_t ranks);

// A file that is larger gets no more lines.
constexpr int64_t kMaxHistoryBytes = int64_t{64} << 20;

// {"time_us":...,"attempt":0,"ranks":[[rank,cpu,rss_bytes,last_output_us,gpu,gpu_memory_bytes,step,
// steps,steps_per_s,loss,heartbeat_us,[[name,value],...]],...]} with its newline; null is what is
// not known, nulls at the end are left out.
std::string history_line(int attempt, int64_t time_us, const std::vector<RankSample>& samples);

struct HistoryRecord {
  int attempt = 0;
  int64_t time_us = 0;
  std::vector<RankSample> samples;
};
// An error for a line that is none, as the last one after a crash.
Result<HistoryRecord> parse_history_line(std::string_view line);

// Appends in the pool, one line at a time; a line that comes while one is on its way is dropped.
// Whoever owns it has the loop outlive what is on its way.
class HistoryWriter {
 public:
  HistoryWriter(Loop& loop, std::string path, std::function<void(const std::string&)> on_trouble);
  ~HistoryWriter();
  void append(std::string line);

 private:
  struct File;
  Loop& loop_;
  std::shared_ptr<File> file_;
  std::function<void(const std::string&)> on_trouble_;
  std::shared_ptr<HistoryWriter*> self_;
  bool busy_ = false;
  bool over_ = false;  // full, or it cannot be written
};

// Reads a history, thinned to about `max_samples`, of the ranks that `wanted` takes, the oldest
// first. Blocks. A file
// that is not there has none.
std::vector<RankSample> read_history(const std::string& path, size_t max_samples,
                                     const std::function<bool(int rank)>& wanted);

// The last record of a history; no ranks if there is none. Blocks.
HistoryRecord read_last_samples(const std::string& path);

}  // namespace muster
