// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The bytes of `stdout.times`, the file beside a log that says when its bytes came and what was cut
// out of it (docs/logs.md). Pure.
//
// The file is made of blocks of kTimesBlock bytes, so that a reader finds a place or a time by
// halving, without an index. A block holds entries (offset in the stream, time), the first
// absolute, each further one as two varints: what was added to both. An offset grows with each
// entry, so a zero byte ends the block. The first block begins with the record of the cut.

// How a bounded log lies in its file (log_file.h). Rewritten in place at each step of a cut, after
// the bytes that it speaks of were moved and before the next are.
struct LogCut {
  int64_t started_us = 0;  // when the stream's first byte came; tells one log from the next
  int64_t head_end = 0;    // where the marker stands; 0: nothing was cut out yet
  int64_t left_out = 0;    // bytes of the stream that are gone
  // While the newest part is being moved: what was moved ends at `to`, what was not yet begins at
  // `from`; between them lies nothing. Both 0 otherwise.
  int64_t to = 0;
  int64_t from = 0;
  // The stream's first `counted_to` bytes have so many newlines.
  int64_t counted_to = 0;
  int64_t counted_lines = 0;

  bool operator==(const LogCut&) const = default;
};

struct TimeEntry {
  int64_t offset = 0;
  int64_t time_us = 0;
};

constexpr int64_t kTimesBlock = 4096;
constexpr int64_t kTimesHead = 128;  // of the first block
constexpr int64_t kTimesFirst = 16;  // an absolute entry

// Of a log: ".../stdout.log" has ".../stdout.times".
std::string times_path(std::string_view log_path);

std::string encode_cut(const LogCut& cut);
// Nothing if these are not kTimesHead bytes of such a record.
std::optional<LogCut> decode_cut(std::string_view bytes);

// The entries of one block (without the first block's head), as far as they make sense.
std::vector<TimeEntry> decode_times(std::string_view block);

// Says where in the file which bytes go for one entry more.
class TimesEncoder {
 public:
  // The least time between two entries: 100 ms, more when the stream is older than a day, so that
  // the file of a stream that writes all the time stays at some MB.
  static constexpr int64_t kLeastInterval = 100'000;
  static constexpr int64_t kEntriesInAge = 1'000'000;

  struct Bytes {
    int64_t place = 0;
    std::string bytes;  // empty: this entry is not needed
  };
  Bytes add(TimeEntry entry);

 private:
  int64_t place_ = kTimesHead;
  bool any_ = false;
  TimeEntry last_;
  int64_t started_us_ = 0;
};

}  // namespace muster
