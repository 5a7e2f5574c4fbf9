// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loop/result.h"
#include "supervisor/job/event.h"

namespace muster {

// Which of a worker's two streams an option is about.
struct StreamSet {
  bool out = false;
  bool err = false;

  bool has(Stream stream) const { return stream == Stream::kStdout ? out : err; }
  bool any() const { return out || err; }
  StreamSet operator|(StreamSet other) const { return {out || other.out, err || other.err}; }
  bool operator==(const StreamSet&) const = default;
};

// First and last rank, both included.
struct RankRange {
  int first = 0;
  int last = 0;

  bool contains(int rank) const { return first <= rank && rank <= last; }
};

// --redirects and --tee. "3" is for every worker; "0:1,4-7:3" names local ranks, and those that it
// does not name get nothing. 0 is none, 1 stdout, 2 stderr, 3 both. A later entry wins.
class StreamMap {
 public:
  StreamSet for_rank(int local_rank) const;
  // The highest rank that was named, -1 if the map is for every worker.
  int highest_named() const;

 private:
  friend Result<StreamMap> parse_stream_map(std::string_view text);
  struct Entry {
    RankRange ranks;
    StreamSet streams;
  };
  StreamSet all_;
  std::vector<Entry> entries_;
};

Result<StreamMap> parse_stream_map(std::string_view text);

// --local-ranks-filter and --ranks-filter: "0,3-5". The empty text lets every rank through.
class RankFilter {
 public:
  bool passes(int rank) const;
  bool passes_all() const { return ranges_.empty(); }
  int highest_named() const;  // -1 if everything passes

 private:
  friend Result<RankFilter> parse_rank_filter(std::string_view text);
  std::vector<RankRange> ranges_;
};

Result<RankFilter> parse_rank_filter(std::string_view text);

}  // namespace muster
