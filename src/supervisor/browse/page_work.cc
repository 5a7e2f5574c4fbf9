// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/page_work.h"

#include <algorithm>
#include <cerrno>

#include "supervisor/browse/browse_gate.h"
#include "supervisor/browse/log_times.h"
#include "supervisor/logs/newlines.h"

namespace muster {

namespace {

constexpr int64_t kMostLines = 10'000;
constexpr int64_t kMostBytes = int64_t{4} << 20;
constexpr int64_t kReadPiece = 256 * 1024;
constexpr int64_t kFirstLookBack = 32 * 1024;  // most pages are small

}  // namespace

PageWork::PageWork(std::shared_ptr<IndexedLog> log, LogQuery query, int64_t count)
    : indexed_(std::move(log)), query_(query), count_(count) {
  query_.max_lines = std::clamp<int64_t>(query_.max_lines, 1, kMostLines);
  query_.max_bytes = std::clamp<int64_t>(query_.max_bytes, 1, kMostBytes);
  query_.max_line = std::clamp<int64_t>(query_.max_line, 1, kMostBytes);
}

bool PageWork::run() {
  budget_ = BrowseGate::kPiece;
  Result<void> done = reopen();
  while (done && step_ != Step::kDone && budget_ > 0)
    done = step();
  if (!done) {
    error_ = done.error();
    step_ = Step::kDone;
  }
  log_.reset();
  return step_ == Step::kDone;
}

Result<LogPage> PageWork::take() {
  if (error_) return *error_;
  return std::move(page_);
}

// Descriptors are held only while a piece runs, so that many requests need few.
Result<void> PageWork::reopen() {
  auto log = indexed_->open();
  if (!log) return log.error();
  log_ = std::move(*log);
  if (!log_) {
    page_ = LogPage();
    step_ = Step::kDone;
  } else if (!(log_->identity() == identity_)) {
    identity_ = log_->identity();
    step_ = Step::kOpen;
  }
  return {};
}

Result<void> PageWork::step() {
  switch (step_) {
    case Step::kOpen:
      return open();
    case Step::kBack:
      return look_back();
    case Step::kCount:
      return count();
    case Step::kForward:
      return look_forward();
    case Step::kNumber:
      return number();
    case Step::kPass:
      return pass();
    case Step::kCollect:
      return collect();
    case Step::kDone:
      return {};
  }
  return {};
}

Result<void> PageWork::open() {
  page_ = LogPage();
  back_.reset();
  cutter_.reset();
  LineStarts::Limits limits{query_.max_lines, query_.max_bytes, query_.max_line};
  switch (query_.from) {
    case LogQuery::From::kOffset:
      return find_offset();
    case LogQuery::From::kLine:
      step_ = Step::kCount;
      return {};
    case LogQuery::From::kTail:
      if (query_.position > 0) end_ = query_.position;
      if (log_->layout().in_hole(end_)) end_ = log_->layout().hole_begin();
      back_.emplace(std::min(end_, log_->size()), limits);
      step_ = Step::kBack;
      return {};
    case LogQuery::From::kTime:
      return find_time();
  }
  return {};
}

Result<bool> PageWork::is_line_start(int64_t offset) {
  if (offset == 0 || offset == log_->layout().hole_end()) return true;
  auto piece = log_->read(offset - 1, 1);
  if (!piece) return piece.error();
  return piece->bytes == "\n";
}

Result<void> PageWork::find_offset() {
  int64_t offset = std::clamp<int64_t>(query_.position, 0, log_->size());
  if (log_->layout().in_hole(offset)) offset = log_->layout().hole_end();
  auto starts = is_line_start(offset);
  if (!starts) return starts.error();
  if (*starts) {
    begin_page(offset);
    return {};
  }
  back_.emplace(offset, LineStarts::Limits{1, 0, 0});
  step_ = Step::kBack;
  return {};
}

Result<void> PageWork::find_time() {
  LogTimes times(log_->times_descriptor());
  if (!times.any() && log_->size() > 0) {
    return Error{ENODATA, indexed_->path() + " has no times"};
  }
  auto entry = times.first_since(query_.position);
  int64_t offset = std::min(entry ? entry->offset : INT64_MAX, log_->size());
  if (log_->layout().in_hole(offset)) offset = log_->layout().hole_end();
  auto starts = is_line_start(offset);
  if (!starts) return starts.error();
  // The line that was being written then had begun before.
  if (*starts) {
    begin_page(offset);
  } else {
    look_forward_from(offset, 1);
  }
  return {};
}

Result<void> PageWork::look_back() {
  const LogLayout& layout = log_->layout();
  int64_t position = back_->position();
  bool behind = layout.hole_end() > 0 && position >= layout.hole_end();
  int64_t begin = behind ? layout.hole_end() : 0;
  if (position <= begin) {
    if (!back_->at_begin() || !behind || layout.hole_begin() == 0) {
      begin_page(back_->start());
    } else {
      back_->jump(layout.hole_begin());
    }
    return {};
  }
  int64_t most = budget_ == BrowseGate::kPiece ? kFirstLookBack : kReadPiece;
  int64_t count = std::min(most, position - begin);
  auto piece = log_->read(position - count, count);
  if (!piece) return piece.error();
  if (piece->offset != position - count || static_cast<int64_t>(piece->bytes.size()) != count) {
    step_ = Step::kOpen;  // it was cut out, or emptied, meanwhile
    return {};
  }
  budget_ -= count;
  if (!back_->feed_before(piece->bytes)) begin_page(back_->start());
  return {};
}

Result<void> PageWork::count() {
  auto counted = indexed_->count_to_line(*log_, query_.position, budget_);
  if (!counted) return counted.error();
  if (!*counted) return {};
  auto point = indexed_->before_line(std::max<int64_t>(query_.position, 0));
  if (!point) point = LineIndex::Point{log_->layout().hole_end(), 0};
  look_forward_from(point->offset, std::max<int64_t>(query_.position, 0) - point->number);
  return {};
}

void PageWork::look_forward_from(int64_t offset, int64_t lines) {
  position_ = offset;
  lines_ = lines;
  step_ = Step::kForward;
}

Result<void> PageWork::look_forward() {
  if (lines_ <= 0) {
    begin_page(position_);
    return {};
  }
  auto piece = log_->read(position_, kReadPiece);
  if (!piece) return piece.error();
  if (piece->bytes.empty() || piece->offset != position_) {
    begin_page(piece->offset);  // the end, or behind the hole
    return {};
  }
  budget_ -= static_cast<int64_t>(piece->bytes.size());
  size_t at = 0;
  while (lines_ > 0) {
    size_t newline = piece->bytes.find('\n', at);
    if (newline == std::string_view::npos) {
      at = piece->bytes.size();
      break;
    }
    at = newline + 1;
    --lines_;
  }
  position_ += static_cast<int64_t>(at);
  return {};
}

void PageWork::begin_page(int64_t offset) {
  begin_ = offset;
  step_ = Step::kNumber;
}

Result<void> PageWork::number() {
  for (int64_t offset : {begin_, log_->size()}) {
    if (indexed_->uncounted_before(offset) > count_) continue;
    auto counted = indexed_->count_to(*log_, offset, budget_);
    if (!counted) return counted.error();
    if (!*counted) return {};
  }
  auto point = indexed_->before_offset(begin_);
  if (!point || point->number < 0) {
    begin_collecting(-1);
    return {};
  }
  position_ = point->offset;
  lines_ = point->number;
  step_ = Step::kPass;
  return {};
}

Result<void> PageWork::pass() {
  if (position_ >= begin_) {
    begin_collecting(lines_);
    return {};
  }
  auto piece = log_->read(position_, std::min(kReadPiece, begin_ - position_));
  if (!piece) return piece.error();
  if (piece->offset != position_ || piece->bytes.empty()) {
    step_ = Step::kOpen;  // it was cut out, or emptied, meanwhile
    return {};
  }
  lines_ += count_newlines(piece->bytes);
  position_ += static_cast<int64_t>(piece->bytes.size());
  budget_ -= static_cast<int64_t>(piece->bytes.size());
  return {};
}

void PageWork::begin_collecting(int64_t number) {
  cutter_.emplace(begin_, number,
                  LineCutter::Limits{query_.max_lines, query_.max_bytes, query_.max_line});
  step_ = Step::kCollect;
}

Result<void> PageWork::collect() {
  int64_t position = cutter_->position();
  bool last_line = position >= end_;  // only the rest of the line that has begun is wanted
  if (last_line && !cutter_->has_open()) {
    finish();
    return {};
  }
  auto piece = log_->read(position, last_line ? kReadPiece : std::min(kReadPiece, end_ - position));
  if (!piece) return piece.error();
  if (piece->bytes.empty()) {
    finish();
    return {};
  }
  budget_ -= static_cast<int64_t>(piece->bytes.size());
  if (piece->offset != position) {
    auto point = indexed_->before_offset(piece->offset);
    bool first = point && point->offset == piece->offset;
    if (!cutter_->jump(piece->offset, first ? point->number : -1)) finish();
    return {};
  }
  std::string_view bytes = piece->bytes;
  if (size_t newline = bytes.find('\n'); last_line && newline != std::string_view::npos) {
    bytes = bytes.substr(0, newline + 1);
  }
  if (!cutter_->feed(bytes)) finish();
  return {};
}

void PageWork::finish() {
  step_ = Step::kDone;
  page_.exists = log_->size() > 0;
  page_.size = log_->size();
  page_.hole_begin = log_->layout().hole_begin();
  page_.hole_end = log_->layout().hole_end();
  page_.end = cutter_->next();
  bool at_end = cutter_->position() == log_->size();
  if (at_end) cutter_->end_open();
  page_.lines = cutter_->take();
  page_.offset = page_.lines.empty() ? begin_ : page_.lines.front().offset;
  page_.total_lines = indexed_->lines(*log_);
  if (page_.total_lines >= 0 && page_.size > 0) {
    auto last = log_->read(page_.size - 1, 1);
    if (last && last->bytes != "\n") ++page_.total_lines;
  }
  LogTimes times(log_->times_descriptor());
  for (LogLine& line : page_.lines)
    line.time_us = times.time_of(line.offset);
}

}  // namespace muster
