// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/series.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "supervisor/browse/indexed_log.h"
#include "supervisor/browse/log_times.h"

namespace muster {

namespace {

constexpr auto kPieceTime = std::chrono::milliseconds(4);

// One log, window by window.
class LogSeries {
 public:
  explicit LogSeries(std::shared_ptr<IndexedLog> log) : indexed_(std::move(log)) {}

  // Reads one window after the other until that time; true when the log is through. A log that
  // cannot be read has no points.
  bool run(std::chrono::steady_clock::time_point until) {
    auto log = indexed_->open();
    if (!log || !*log) return true;
    LogTimes times((*log)->times_descriptor());
    if (size_ < 0) size_ = (*log)->size();
    while (window_ < windows()) {
      if (!read_window(**log, times)) return true;
      ++window_;
      if (std::chrono::steady_clock::now() >= until) return false;
    }
    return true;
  }

  std::vector<SeriesPoint> take(size_t count) { return points_.take(count); }

 private:
  bool sparse() const { return size_ > kSeriesWindows * kSeriesWindow; }
  int64_t windows() const {
    return sparse() ? kSeriesWindows : (size_ + kSeriesWindow - 1) / kSeriesWindow;
  }

  bool read_window(LogBytes& log, LogTimes& times) {
    int64_t begin = window_ * kSeriesWindow;
    if (sparse()) {
      // Evenly, the last one at the end.
      begin = static_cast<int64_t>(static_cast<double>(size_ - kSeriesWindow) *
                                   static_cast<double>(window_) / (kSeriesWindows - 1));
      points_.jump();
      rest_.clear();
    }
    auto piece = log.read(begin, kSeriesWindow);
    if (!piece) return false;
    std::string_view bytes = piece->bytes;
    int64_t offset = piece->offset;
    // The first line of a window in the middle has lost its beginning.
    if (sparse() && begin > 0) {
      size_t start = std::min(bytes.find_first_of("\r\n"), bytes.size());
      bytes.remove_prefix(start);
      offset += static_cast<int64_t>(start);
    }
    add_lines(bytes, offset, times);
    return true;
  }

  // States of a line that is redrawn count like lines.
  void add_lines(std::string_view bytes, int64_t offset, LogTimes& times) {
    while (!bytes.empty()) {
      size_t end = bytes.find_first_of("\r\n");
      std::string_view line = bytes.substr(0, end);
      if (rest_.size() + line.size() <= kMaxProgressLine) rest_ += line;
      if (end == std::string_view::npos) return;
      if (!rest_.empty()) points_.add_line(rest_, times.time_of(offset));
      rest_.clear();
      bytes.remove_prefix(end + 1);
      offset += static_cast<int64_t>(end) + 1;
    }
  }

  std::shared_ptr<IndexedLog> indexed_;
  int64_t size_ = -1;
  int64_t window_ = 0;
  std::string rest_;  // of the line that goes on in the next window
  SeriesPoints points_;
};

class SeriesWork {
 public:
  SeriesWork(LogReader& reader, const std::vector<std::string>& paths) {
    for (const std::string& path : paths)
      logs_.emplace_back(reader.log(path));
  }

  bool run() {
    auto until = std::chrono::steady_clock::now() + kPieceTime;
    while (at_ < logs_.size()) {
      if (!logs_[at_].run(until)) return false;
      auto points = logs_[at_].take(kSeriesMost / logs_.size());
      std::move(points.begin(), points.end(), std::back_inserter(points_));
      ++at_;
    }
    std::stable_sort(
        points_.begin(), points_.end(),
        [](const SeriesPoint& a, const SeriesPoint& b) { return a.time_us < b.time_us; });
    return true;
  }

  std::vector<SeriesPoint> take() { return std::move(points_); }

 private:
  std::vector<LogSeries> logs_;
  size_t at_ = 0;
  std::vector<SeriesPoint> points_;
};

class SeriesTask final : public BrowseTask {
 public:
  SeriesTask(LogReader& reader, const std::vector<std::string>& paths,
             std::function<void(std::vector<SeriesPoint>)> on_done)
      : work_(std::make_shared<SeriesWork>(reader, paths)) {
    auto done = std::make_shared<bool>(false);
    job_ = reader.gate().add([work = work_, done] { *done = work->run(); },
                             [this, done, on_done = std::move(on_done)] {
                               if (*done) return on_done(work_->take());
                               job_->wake();
                             });
    job_->wake();
  }

 private:
  std::shared_ptr<SeriesWork> work_;
  std::unique_ptr<BrowseJob> job_;
};

}  // namespace

void SeriesPoints::add_line(std::string_view line, int64_t time_us) {
  Progress said = parse_progress(line);
  if (said.step < 0 && !said.loss) return;
  now_.update(said);
  SeriesPoint point{time_us, now_.step, now_.steps, said.loss};
  // A line that is redrawn says the same step again; what it says of the loss may be new.
  if (last_ && last_->step == point.step && point.step >= 0) {
    if (!point.loss) point.loss = last_->loss;
    point.time_us = last_->time_us;
    if (last_kept_) points_.back() = point;
    last_ = point;
    return;
  }
  add(point);
}

void SeriesPoints::add(SeriesPoint point) {
  last_ = point;
  last_kept_ = seen_++ % each_ == 0;
  if (!last_kept_) return;
  points_.push_back(point);
  if (points_.size() < kMost) return;
  for (size_t i = 0; 2 * i < points_.size(); ++i)
    points_[i] = points_[2 * i];
  points_.resize(points_.size() / 2);
  last_kept_ = false;
  each_ *= 2;
}

std::vector<SeriesPoint> SeriesPoints::take(size_t count) {
  if (last_ && !last_kept_) points_.push_back(*last_);
  if (points_.size() <= count) return std::move(points_);
  std::vector<SeriesPoint> chosen;
  for (size_t i = 0; i < count; ++i)
    chosen.push_back(points_[i * (points_.size() - 1) / (count - 1)]);
  return chosen;
}

std::unique_ptr<BrowseTask> read_series(LogReader& reader, const std::vector<std::string>& paths,
                                        std::function<void(std::vector<SeriesPoint>)> on_done) {
  return std::make_unique<SeriesTask>(reader, paths, std::move(on_done));
}

}  // namespace muster
