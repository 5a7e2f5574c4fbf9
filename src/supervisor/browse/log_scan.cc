// SPDX-License-Identifier: Apache-2.0
//
// Blocks of whole lines are searched at once. A line that is longer than a block is searched in
// parts that overlap, so that only a match longer than the overlap is missed in it.
#include "supervisor/browse/log_scan.h"

#include <algorithm>

#include "supervisor/browse/line_context.h"
#include "supervisor/browse/utf16_text.h"
#include "supervisor/logs/newlines.h"

namespace muster {

namespace {

constexpr int64_t kBlock = 512 << 10;
constexpr int64_t kOverlap = 4 << 10;
// What is read to give the first line of a part its number.
constexpr int64_t kCountForNumber = int64_t{4} << 20;
// Of a long line so much is shown before the first match.
constexpr size_t kShownBefore = 512;

bool inside_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

Result<void> LogScan::measure(const IndexedLog* lines) {
  auto log = LogBytes::open(place_.path);
  if (!log) return log.error();
  if (!*log) return {};
  identity_ = (*log)->identity();
  end_ = std::min((*log)->size(), place_.to);
  if (place_.from > 0) return begin_within(**log, lines);
  return {};
}

// A line that has begun before is not searched.
Result<void> LogScan::begin_within(LogBytes& log, const IndexedLog* lines) {
  position_ = line_begin_ = std::min(place_.from, end_);
  number_ = -1;
  auto piece = log.read(position_ - 1, 1);
  if (!piece) return piece.error();
  line_found_ = piece->bytes != "\n" && !log.layout().in_hole(position_ - 1);
  const auto point = lines != nullptr ? lines->before_offset(position_) : std::nullopt;
  if (!point || point->number < 0 || position_ - point->offset > kCountForNumber) return {};
  int64_t number = point->number;
  for (int64_t at = point->offset; at < position_;) {
    piece = log.read(at, std::min(kBlock, position_ - at));
    if (!piece) return piece.error();
    if (piece->offset != at || piece->bytes.empty()) return {};
    number += count_newlines(piece->bytes);
    at += std::ssize(piece->bytes);
  }
  number_ = number;
  return {};
}

Result<void> LogScan::run(const SearchPattern& pattern, int context, int64_t& budget,
                          size_t max_hits, std::vector<SearchHit>& hits) {
  auto opened = LogBytes::open(place_.path);
  if (!opened) return opened.error();
  if (!*opened || !((*opened)->identity() == identity_)) {  // it is not there any more
    position_ = end_;
    return {};
  }
  LogBytes& log = **opened;
  LogTimes times(log.times_descriptor());
  while (budget > 0 && !done() && hits.size() < max_hits) {
    auto piece = log.read(position_, std::min(kBlock, end_ - position_));
    if (!piece) return piece.error();
    if (piece->bytes.empty() || piece->offset >= end_) {
      position_ = end_;
      break;
    }
    if (piece->offset != position_) {
      auto crossed = cross_hole(log, piece->offset, budget);
      if (!crossed) return crossed.error();
      continue;
    }
    budget -= std::ssize(piece->bytes);
    const Result<void> scanned = scan_block(log, piece->bytes, pattern, max_hits - hits.size());
    if (!scanned) return scanned.error();
    LineContext beside{log, times, kMaxContext};
    for (Found& found : found_) {
      SearchHit& hit = found.hit;
      auto before = beside.before(hit.line.offset, hit.line.number, context);
      if (!before) return before.error();
      hit.before = std::move(*before);
      hit.line.time_us = times.time_of(hit.line.offset);
      const int64_t next = hit.line.number < 0 ? -1 : hit.line.number + 1;
      if (hit.line.ended) {
        auto after = beside.after(found.line_end, next, context);
        if (!after) return after.error();
        hit.after = std::move(*after);
      }
      hits.push_back(std::move(hit));
    }
    found_.clear();
  }
  return {};
}

// What follows is behind what was left out. How many lines that was is known at a later place, from
// where they are counted back; it may take several runs.
Result<void> LogScan::cross_hole(LogBytes& log, int64_t to, int64_t& budget) {
  if (!lines_) lines_ = std::make_unique<IndexedLog>(place_.path);
  lines_->follow_layout(log);
  auto counted = lines_->count_to(log, to, budget);
  if (!counted) return counted.error();
  if (!*counted) return {};
  const auto point = lines_->before_offset(to);
  number_ = point && point->offset == to ? point->number : -1;
  position_ = line_begin_ = to;
  line_found_ = false;
  lines_.reset();
  return {};
}

Result<void> LogScan::scan_block(LogBytes& log, std::string_view block,
                                 const SearchPattern& pattern, size_t max_hits) {
  const bool to_the_end = position_ + std::ssize(block) >= end_ ||
                          position_ + std::ssize(block) == log.layout().hole_begin();
  size_t usable = block.rfind('\n') + 1;  // 0 if there is none
  const bool part_of_line = usable == 0 && !to_the_end;
  if (usable == 0 || to_the_end) usable = block.size();
  block = block.substr(0, usable);
  size_t at = 0, counted = 0;
  while (at < block.size() && found_.size() < max_hits) {
    const auto match = pattern.find(block, at);
    if (!match) break;
    const size_t newline = match->begin == 0 ? block.npos : block.rfind('\n', match->begin - 1);
    const SearchPattern::Span line{newline == block.npos ? 0 : newline + 1,
                                   std::min(block.find('\n', match->end), block.size())};
    if (line.begin > counted) pass(block.substr(counted, line.begin - counted));
    counted = std::max(counted, line.begin);
    if (!line_found_) found_.push_back(make_hit(block, line, *match, pattern));
    line_found_ = true;
    at = line.end + 1;
  }
  const bool full = found_.size() >= max_hits && at < block.size();
  size_t end = full ? at : block.size();
  if (part_of_line && !full && std::ssize(block) > kOverlap)
    end = block.size() - static_cast<size_t>(kOverlap);
  pass(block.substr(counted, end - counted));
  return {};
}

// Counts lines up to there.
void LogScan::pass(std::string_view bytes) {
  position_ += std::ssize(bytes);
  const size_t newline = bytes.rfind('\n');
  if (newline == bytes.npos) return;
  line_begin_ = position_ - std::ssize(bytes) + static_cast<int64_t>(newline) + 1;
  line_found_ = false;
  if (number_ >= 0) number_ += count_newlines(bytes);
}

// position_ is that of `line` in the log.
LogScan::Found LogScan::make_hit(std::string_view block, SearchPattern::Span line,
                                 SearchPattern::Span match, const SearchPattern& pattern) const {
  std::string_view text = block.substr(line.begin, line.end - line.begin);
  Found found;
  LogLine& shown = found.hit.line;
  found.hit.log = log_;
  shown.offset = line_begin_;
  shown.number = number_;
  shown.size = position_ - line_begin_ + std::ssize(text);
  shown.ended = line.end < block.size();
  shown.skipped = position_ - line_begin_;
  found.line_end = position_ + std::ssize(text) + 1;
  if (std::ssize(text) > kMaxText) {
    size_t first = match.begin - line.begin;
    first = first > kShownBefore ? first - kShownBefore : 0;
    while (first < text.size() && inside_character(text[first]))
      ++first;
    shown.skipped += static_cast<int64_t>(first);
    text = text.substr(first, static_cast<size_t>(kMaxText));
  }
  int64_t units = 0;
  size_t at = 0;
  for (const SearchPattern::Span& span : pattern.matches(text)) {
    units += append_utf16_counted(shown.text, text.substr(at, span.begin - at));
    const int64_t begin = units;
    units += append_utf16_counted(shown.text, text.substr(span.begin, span.end - span.begin));
    found.hit.matches.emplace_back(begin, units);
    at = span.end;
  }
  append_utf16_counted(shown.text, text.substr(at));
  return found;
}

}  // namespace muster
