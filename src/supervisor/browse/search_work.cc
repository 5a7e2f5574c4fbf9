// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/search_work.h"

#include <algorithm>

namespace muster {

namespace {

// Of a piece: an expression that is hard to match goes through about 50 MB a second.
constexpr int64_t kPiece = int64_t{2} << 20;
// After so much the next log has its turn.
constexpr int64_t kTurn = int64_t{1} << 20;
// To open a log costs about as much as to read this.
constexpr int64_t kOpening = 16 << 10;

}  // namespace

SearchWork::SearchWork(Settings settings)
    : pattern_(std::move(settings.pattern)),
      context_(settings.context),
      piece_hits_(kHitsOfPiece / static_cast<size_t>(1 + settings.context / 2)),
      max_hits_(settings.max_hits),
      lines_(std::move(settings.lines)) {
  for (SearchPlace& place : settings.places)
    scans_.push_back(std::make_unique<LogScan>(scans_.size(), std::move(place)));
}

bool SearchWork::run() {
  if (!measured_) return !measure();
  int64_t budget = kPiece;
  while (budget > 0 && !scans_.empty() && hits_.size() < piece_hits_ && hit_count_ < max_hits_)
    scan_next(budget);
  truncated_ = hit_count_ >= max_hits_ && !scans_.empty();
  return scans_.empty() || truncated_;
}

// True: there is something to search.
bool SearchWork::measure() {
  int64_t budget = kPiece * 8;
  for (; next_ < scans_.size() && budget > 0; budget -= kOpening) {
    const Result<void> measured = scans_[next_]->measure(lines_.get());
    if (!measured || scans_[next_]->done()) {
      drop(next_, measured);
    } else {
      total_bytes_ += scans_[next_]->end() - scans_[next_]->position();
      ++next_;
    }
  }
  if (next_ < scans_.size()) return true;
  measured_ = true;
  next_ = 0;
  return !scans_.empty();
}

void SearchWork::scan_next(int64_t& budget) {
  next_ = next_ < scans_.size() ? next_ : 0;
  LogScan& scan = *scans_[next_];
  const int64_t before = scan.position();
  const auto room = static_cast<size_t>(
      std::min<int64_t>(static_cast<int64_t>(piece_hits_ - hits_.size()), max_hits_ - hit_count_));
  int64_t turn = std::min(budget, kTurn);
  budget -= turn + kOpening;
  const size_t hits_before = hits_.size();
  const Result<void> scanned = scan.run(*pattern_, context_, turn, hits_before + room, hits_);
  budget += turn;
  hit_count_ += static_cast<int64_t>(hits_.size() - hits_before);
  bytes_ += scan.position() - before;
  if (!scanned || scan.done()) {
    bytes_ += scan.end() - scan.position();
    drop(next_, scanned);
  } else {
    ++next_;
  }
}

void SearchWork::drop(size_t at, const Result<void>& how) {
  if (!how && troubles_.size() < kMaxTroubles) troubles_.push_back(how.error().message);
  scans_.erase(scans_.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace muster
