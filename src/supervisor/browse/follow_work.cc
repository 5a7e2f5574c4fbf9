// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/follow_work.h"

#include <algorithm>

#include "supervisor/browse/browse_gate.h"
#include "supervisor/browse/log_times.h"
#include "supervisor/logs/newlines.h"

namespace muster {

namespace {

constexpr int64_t kMaxLines = 5'000;  // of a page
constexpr int64_t kReadPiece = 256 * 1024;
// As for a page that is asked for: beyond it lines have no numbers until somebody counts.
constexpr int64_t kCountForNumbers = int64_t{16} << 20;

}  // namespace

void FollowWork::run() {
  more_ = false;
  found_.reset();
  auto log = indexed_->open();
  Result<void> done = log ? Result<void>() : log.error();
  if (log && *log) {
    watchable_ = (*log)->on_local_disk();
    done = read(**log);
  } else if (done) {
    cutter_.reset();  // what comes under this name is another log
    identity_ = {};
  }
  if (!done) found_ = done.error();
}

void FollowWork::begin_at(int64_t offset) {
  cutter_.emplace(offset, offset == 0 ? 0 : -1,
                  LineCutter::Limits{kMaxLines, settings_.max_bytes, settings_.max_line});
  numbered_ = offset == 0;
  shown_open_ = -1;
}

Result<void> FollowWork::take_place(LogBytes& log) {
  bool first = identity_ == LogBytes::Identity();
  // A file of times that comes later does not make it another log.
  bool same = identity_.device == log.identity().device && identity_.file == log.identity().file &&
              (identity_.started_us == log.identity().started_us || identity_.started_us == 0);
  identity_ = log.identity();
  if (!cutter_) begin_at(first ? std::exchange(settings_.offset, 0) : 0);
  if ((!first && !same) || log.size() < cutter_->position()) begin_at(0);
  if (log.size() - cutter_->position() > settings_.max_lag) jump_ahead(log);
  return take_number(log);
}

// To the first line that begins in the newest part.
void FollowWork::jump_ahead(const LogBytes& log) {
  begin_at(std::max<int64_t>(0, log.size() - std::min(settings_.max_bytes, settings_.max_lag)));
  cutter_->skip_line();
}

Result<void> FollowWork::take_number(LogBytes& log) {
  if (numbered_ || cutter_->skipping()) return {};
  int64_t next = cutter_->next();
  if (indexed_->uncounted_before(next) > kCountForNumbers) return {};
  int64_t budget = BrowseGate::kPiece;
  auto counted = indexed_->count_to(log, next, budget);
  if (!counted) return counted.error();
  if (!*counted) return {};
  auto point = indexed_->before_offset(next);
  if (!point || point->number < 0 || next - point->offset > budget) return {};
  int64_t number = point->number;
  for (int64_t at = point->offset; at < next;) {
    auto piece = log.read(at, std::min(kReadPiece, next - at));
    if (!piece) return piece.error();
    if (piece->offset != at || piece->bytes.empty()) return {};
    number += count_newlines(piece->bytes);
    at += static_cast<int64_t>(piece->bytes.size());
  }
  cutter_->set_number(number);
  numbered_ = true;
  return {};
}

Result<void> FollowWork::read(LogBytes& log) {
  if (auto placed = take_place(log); !placed) return placed;
  int64_t budget = BrowseGate::kPiece;
  while (true) {
    auto piece = log.read(cutter_->position(), kReadPiece);
    if (!piece) return piece.error();
    if (piece->bytes.empty()) break;
    if (budget <= 0) {
      more_ = true;
      break;
    }
    budget -= static_cast<int64_t>(piece->bytes.size());
    if (piece->offset != cutter_->position()) {
      numbered_ = false;
      if (!cutter_->jump(piece->offset, -1)) break;
    } else if (!cutter_->feed(piece->bytes)) {
      break;
    }
  }
  make_page(log);
  return {};
}

void FollowWork::make_page(LogBytes& log) {
  LogPage page;
  page.end = cutter_->next();
  if (!cutter_->empty()) {
    page.lines = cutter_->take();
    more_ = true;
    shown_open_ = -1;
  } else if (!more_ && cutter_->has_open() && cutter_->open_line().size != shown_open_) {
    page.lines.push_back(cutter_->open_line());
    shown_open_ = page.lines.front().size;
  } else {
    return;
  }
  page.exists = true;
  page.offset = page.lines.front().offset;
  page.size = log.size();
  page.hole_begin = log.layout().hole_begin();
  page.hole_end = log.layout().hole_end();
  LogTimes times(log.times_descriptor());
  for (LogLine& line : page.lines)
    line.time_us = times.time_of(line.offset);
  found_ = std::move(page);
}

}  // namespace muster
