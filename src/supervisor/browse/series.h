// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/browse/log_reader.h"
#include "supervisor/browse/progress_line.h"

namespace muster {

// How far a worker was at some time, by its own output.
struct SeriesPoint {
  int64_t time_us = 0;  // 0 if unknown
  int64_t step = -1;
  int64_t steps = -1;
  std::optional<double> loss;

  bool operator==(const SeriesPoint&) const = default;
};

// Makes points of the lines of one log, told in order. Holds at most kMost: when there are more,
// every second one goes, evenly over the whole. Pure.
class SeriesPoints {
 public:
  static constexpr size_t kMost = 4'096;

  void add_line(std::string_view line, int64_t time_us);
  // What follows is elsewhere in the log: what was said before does not belong to it.
  void jump() { now_ = Progress(); }

  // At most `count`, evenly taken, the last one among them.
  std::vector<SeriesPoint> take(size_t count);

 private:
  void add(SeriesPoint point);

  Progress now_;
  std::vector<SeriesPoint> points_;
  size_t each_ = 1;  // one of so many points is kept
  size_t seen_ = 0;
  std::optional<SeriesPoint> last_;  // the newest
  bool last_kept_ = false;           // it is the last of points_
};

// Reads the points of a worker's logs, off the loop, in pieces: of small logs every line, of large
// ones kSeriesWindows places evenly over the whole. At most kSeriesMost points, by time.
constexpr size_t kSeriesMost = 1'000;
constexpr int64_t kSeriesWindows = 1'000;
constexpr int64_t kSeriesWindow = 8 * 1024;
std::unique_ptr<BrowseTask> read_series(LogReader& reader, const std::vector<std::string>& paths,
                                        std::function<void(std::vector<SeriesPoint>)> on_done);

}  // namespace muster
