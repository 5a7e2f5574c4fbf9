// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/browse/log_scan.h"
#include "supervisor/browse/search_pattern.h"

namespace muster {

// Searches many logs, piece by piece on the pool. The logs take turns, so that each gives its first
// hits early however large another is. Made by LogSearch, which gives it its turns.
class SearchWork {
 public:
  static constexpr size_t kHitsOfPiece = 64;  // fewer with much context
  static constexpr size_t kMaxTroubles = 10;

  struct Settings {
    std::shared_ptr<const SearchPattern> pattern;
    int context = 2;
    int64_t max_hits = 1'000;
    std::vector<SearchPlace> places;
    // If there is one place: what is known of its lines (LogReader::log()), or null.
    std::shared_ptr<const IndexedLog> lines;
  };
  explicit SearchWork(Settings settings);

  // One piece; true when all is searched, or there are enough hits.
  bool run();

  // Of the pieces since it was taken last.
  std::vector<SearchHit> take_hits() { return std::exchange(hits_, {}); }

  int64_t hits() const { return hit_count_; }
  int64_t bytes() const { return bytes_; }
  int64_t total_bytes() const { return total_bytes_; }
  // Stopped with hits left over.
  bool truncated() const { return truncated_; }
  // Logs that could not be read, at most kMaxTroubles.
  const std::vector<std::string>& troubles() const { return troubles_; }

 private:
  bool measure();
  void scan_next(int64_t& budget);
  void drop(size_t at, const Result<void>& how);

  const std::shared_ptr<const SearchPattern> pattern_;
  const int context_;
  const size_t piece_hits_;
  const int64_t max_hits_;
  const std::shared_ptr<const IndexedLog> lines_;
  std::vector<std::unique_ptr<LogScan>> scans_;  // those that are not done
  size_t next_ = 0;
  bool measured_ = false;
  std::vector<SearchHit> hits_;
  int64_t hit_count_ = 0;
  int64_t bytes_ = 0;
  int64_t total_bytes_ = 0;
  bool truncated_ = false;
  std::vector<std::string> troubles_;
};

}  // namespace muster
