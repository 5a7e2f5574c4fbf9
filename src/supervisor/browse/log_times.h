// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "supervisor/logs/times_format.h"

namespace muster {

// When the bytes of a log came: looked up in its file of times by halving. Blocks; lives as long as
// one piece of work on the pool. Of a file that makes no sense the answers make none either, but
// come in bounded time.
class LogTimes {
 public:
  // The descriptor's owner outlives this; -1: there are no times.
  explicit LogTimes(int descriptor);

  bool any() const { return blocks_ > 0; }

  // When the byte at `offset` came; 0 if unknown. Quick for offsets that rise.
  int64_t time_of(int64_t offset);

  // The first entry whose time is at or after `time_us`; nothing if all came before.
  std::optional<TimeEntry> first_since(int64_t time_us);

 private:
  template <typename Before>
  int64_t last_block(Before before);
  std::optional<TimeEntry> first_of(int64_t block) const;
  void load(int64_t block);

  int descriptor_;
  int64_t blocks_ = 0;
  int64_t loaded_ = -1;
  std::vector<TimeEntry> entries_;  // of block loaded_
  std::optional<TimeEntry> next_;   // the first of the block behind it
};

}  // namespace muster
