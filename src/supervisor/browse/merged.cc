// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/merged.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <queue>
#include <utility>

#include "supervisor/browse/log_times.h"
#include "supervisor/browse/page_work.h"

namespace muster {

namespace {

// How long one piece may take; logs are many, and most have their next lines at hand.
constexpr auto kPieceTime = std::chrono::milliseconds(4);
constexpr int64_t kLeastChunk = 16;              // lines read of one log at a time
constexpr int64_t kMostHeld = int64_t{8} << 20;  // bytes of text held, for all logs
constexpr int64_t kLeastHeld = 4096;             // for one

// The next lines of one log in one way.
class Source {
 public:
  Source(std::shared_ptr<IndexedLog> indexed, int rank, int stream, const MergedQuery& query,
         int64_t chunk, int64_t max_bytes)
      : indexed_(std::move(indexed)), rank_(rank), stream_(stream), query_(query) {
    page_query_.max_lines = chunk;
    page_query_.max_bytes = max_bytes;
    page_query_.max_line = query.max_line;
  }

  int rank() const { return rank_; }
  bool untimed() const { return untimed_; }
  bool needs_lines() const { return lines_.empty() && !exhausted_; }
  bool empty() const { return lines_.empty(); }
  MergedPlace place() const { return place_of(lines_.front()); }

  MergedLine take() {
    MergedLine line{rank_, stream_, std::move(lines_.front())};
    lines_.pop_front();
    return line;
  }

  // One piece of reading. A log that cannot be read does not keep the others from being shown: it
  // counts as one without times.
  void read() {
    if (!work_ && !std::exchange(begun_, true)) {
      if (auto placed = find_place(); !placed) give_up();
      if (exhausted_) return;
    }
    if (!work_) work_.emplace(indexed_, page_query_, 0);
    if (!work_->run()) return;
    auto page = work_->take();
    work_.reset();
    if (page) return take_page(std::move(*page));
    give_up();
  }

 private:
  MergedPlace place_of(const LogLine& line) const {
    return {line.time_us, rank_, stream_, line.offset};
  }

  void give_up() { exhausted_ = untimed_ = true; }

  // The place among this log's lines: by offset if it is that of one of them, else by time.
  Result<void> find_place() {
    auto log = indexed_->open();
    if (!log) return log.error();
    exhausted_ = !*log || (*log)->size() == 0;
    if (exhausted_) return {};
    LogTimes times((*log)->times_descriptor());
    untimed_ = exhausted_ = !times.any();
    if (exhausted_) return {};
    const MergedPlace& place = query_.place;
    bool on = query_.way == MergedQuery::Way::kAfter;
    page_query_.from = on ? LogQuery::From::kOffset : LogQuery::From::kTail;
    if (place.rank == rank_ && place.stream == stream_) {
      page_query_.position = place.offset;
      // Nothing is before the first line; to a tail that offset would mean the end.
      exhausted_ = !on && place.offset <= 0;
      return {};
    }
    // Lines of the same time are behind the place if this log is.
    bool behind = std::pair(rank_, stream_) > std::pair(place.rank, place.stream);
    int64_t since = behind || place.time_us == INT64_MAX ? place.time_us : place.time_us + 1;
    if (on) {
      page_query_.from = LogQuery::From::kTime;
      page_query_.position = since;
      return {};
    }
    auto entry = times.first_since(since);
    page_query_.position = entry ? entry->offset : 0;
    exhausted_ = entry && entry->offset == 0;
    return {};
  }

  void take_page(LogPage page) {
    bool on = query_.way == MergedQuery::Way::kAfter;
    page_query_.from = on ? LogQuery::From::kOffset : LogQuery::From::kTail;
    page_query_.position = on ? page.end : page.offset;
    exhausted_ = page.lines.empty() ||
                 (on ? !page.lines.back().ended || page.end >= page.size : page.offset == 0);
    if (!on) std::reverse(page.lines.begin(), page.lines.end());
    for (LogLine& line : page.lines) {
      MergedPlace place = place_of(line);
      if (on ? place > query_.place : place < query_.place) lines_.push_back(std::move(line));
    }
  }

  std::shared_ptr<IndexedLog> indexed_;
  int rank_;
  int stream_;
  MergedQuery query_;
  LogQuery page_query_;
  std::optional<PageWork> work_;
  bool begun_ = false;
  bool exhausted_ = false;
  bool untimed_ = false;
  std::deque<LogLine> lines_;  // nearest first
};

class MergedWork {
 public:
  MergedWork(LogReader& reader, const std::vector<MergedLog>& logs, MergedQuery query)
      : query_(query) {
    auto count = std::max<int64_t>(1, static_cast<int64_t>(logs.size()));
    int64_t chunk = std::clamp(2 * query.max_lines / count, std::min(kLeastChunk, query.max_lines),
                               query.max_lines);
    int64_t bytes = std::clamp(kMostHeld / count, kLeastHeld, query.max_bytes);
    for (const MergedLog& log : logs) {
      sources_.emplace_back(reader.log(log.path), log.rank, log.stream, query, chunk, bytes);
    }
  }

  // One piece; true when the page is there.
  bool run() {
    auto until = std::chrono::steady_clock::now() + kPieceTime;
    while (!done_ && std::chrono::steady_clock::now() < until)
      step();
    return done_;
  }

  MergedPage take() { return std::move(page_); }

 private:
  void step() {
    if (filled_ < sources_.size()) {
      Source& source = sources_[filled_];
      if (source.needs_lines()) return source.read();
      if (!source.empty()) queue_.push(filled_);
      if (source.untimed()) page_.untimed.push_back(source.rank());
      ++filled_;
      return;
    }
    if (waiting_) {
      Source& source = sources_[*waiting_];
      if (source.needs_lines()) return source.read();
      if (!source.empty()) queue_.push(*waiting_);
      waiting_.reset();
      return;
    }
    if (queue_.empty() || full()) return finish();
    size_t next = queue_.top();
    queue_.pop();
    page_.lines.push_back(sources_[next].take());
    bytes_ += static_cast<int64_t>(page_.lines.back().line.text.size());
    waiting_ = next;
  }

  bool full() const {
    if (page_.lines.empty()) return false;
    return static_cast<int64_t>(page_.lines.size()) >= query_.max_lines ||
           bytes_ >= query_.max_bytes;
  }

  void finish() {
    done_ = true;
    page_.more = !queue_.empty();
    if (query_.way == MergedQuery::Way::kBefore) {
      std::reverse(page_.lines.begin(), page_.lines.end());
    }
    auto& untimed = page_.untimed;
    std::sort(untimed.begin(), untimed.end());
    untimed.erase(std::unique(untimed.begin(), untimed.end()), untimed.end());
  }

  struct Later {
    const MergedWork& work;
    bool operator()(size_t a, size_t b) const {
      MergedPlace left = work.sources_[a].place(), right = work.sources_[b].place();
      return work.query_.way == MergedQuery::Way::kAfter ? left > right : left < right;
    }
  };

  MergedQuery query_;
  std::vector<Source> sources_;
  size_t filled_ = 0;              // sources that have their first lines
  std::optional<size_t> waiting_;  // the one that may need more
  std::priority_queue<size_t, std::vector<size_t>, Later> queue_{Later{*this}};
  int64_t bytes_ = 0;
  bool done_ = false;
  MergedPage page_;
};

class MergedTask final : public BrowseTask {
 public:
  MergedTask(LogReader& reader, const std::vector<MergedLog>& logs, MergedQuery query,
             std::function<void(MergedPage)> on_done)
      : work_(std::make_shared<MergedWork>(reader, logs, query)) {
    auto done = std::make_shared<bool>(false);
    job_ = reader.gate().add([work = work_, done] { *done = work->run(); },
                             [this, done, on_done = std::move(on_done)] {
                               if (*done) return on_done(work_->take());
                               job_->wake();
                             });
    job_->wake();
  }

 private:
  std::shared_ptr<MergedWork> work_;
  std::unique_ptr<BrowseJob> job_;
};

}  // namespace

std::unique_ptr<BrowseTask> read_merged(LogReader& reader, std::vector<MergedLog> logs,
                                        MergedQuery query,
                                        std::function<void(MergedPage)> on_done) {
  if (logs.size() > kMaxMergedLogs) logs.resize(kMaxMergedLogs);
  query.max_lines = std::clamp<int64_t>(query.max_lines, 1, kMaxMergedLines);
  query.max_bytes = std::clamp<int64_t>(query.max_bytes, 1, kMostHeld);
  return std::make_unique<MergedTask>(reader, logs, query, std::move(on_done));
}

}  // namespace muster
