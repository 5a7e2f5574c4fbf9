// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loop/result.h"
#include "supervisor/browse/indexed_log.h"
#include "supervisor/browse/log_bytes.h"
#include "supervisor/browse/log_page.h"
#include "supervisor/browse/log_times.h"
#include "supervisor/browse/search_pattern.h"

namespace muster {

// A line in which the pattern was found, with those around it.
struct SearchHit {
  size_t log = 0;  // which of those that are searched
  LogLine line;    // its text is UTF-8; of a long line the part around the first match
  std::vector<std::pair<int64_t, int64_t>> matches;  // in UTF-16 units of the text
  std::vector<LogLine> before, after;                // texts as written
};

// A log to search, or the lines of it that begin in [from, to).
struct SearchPlace {
  std::string path;
  int64_t from = 0;
  int64_t to = INT64_MAX;
};

// Goes once through one log, from its begin to where it ended when the search began. Blocks, so its
// run() belongs on the pool.
class LogScan {
 public:
  static constexpr int64_t kMaxText = 4 << 10;     // of a hit
  static constexpr int64_t kMaxContext = 1 << 10;  // of a line beside it

  LogScan(size_t log, SearchPlace place) : log_(log), place_(std::move(place)) {}

  // How much there is to read. Nothing to read is no error. `lines` is what is known of its lines,
  // or null: without it those of a search that begins in the middle have no numbers.
  Result<void> measure(const IndexedLog* lines);

  // Takes at most about `budget` bytes, from which it takes what it read, and stops early when
  // `hits` has `max_hits`.
  Result<void> run(const SearchPattern& pattern, int context, int64_t& budget, size_t max_hits,
                   std::vector<SearchHit>& hits);

  bool done() const { return position_ >= end_; }
  int64_t position() const { return position_; }
  int64_t end() const { return end_; }

 private:
  struct Found {
    SearchHit hit;
    int64_t line_end = 0;  // where the next line begins
  };

  Result<void> scan_block(LogBytes& log, std::string_view block, const SearchPattern& pattern,
                          size_t max_hits);
  Found make_hit(std::string_view block, SearchPattern::Span line, SearchPattern::Span match,
                 const SearchPattern& pattern) const;
  Result<void> begin_within(LogBytes& log, const IndexedLog* lines);
  Result<void> cross_hole(LogBytes& log, int64_t to, int64_t& budget);
  void pass(std::string_view bytes);

  const size_t log_;
  const SearchPlace place_;
  LogBytes::Identity identity_;
  int64_t position_ = 0;
  int64_t end_ = 0;
  // The line at position_.
  int64_t line_begin_ = 0;
  int64_t number_ = 0;                 // -1: unknown
  bool line_found_ = false;            // it was a hit already
  std::vector<Found> found_;           // of the block
  std::unique_ptr<IndexedLog> lines_;  // while those behind the hole are counted
};

}  // namespace muster
