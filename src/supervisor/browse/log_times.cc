// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/log_times.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace muster {

namespace {

// Bytes [place, place + count) of the file, fewer at its end.
std::string read_at(int descriptor, int64_t place, int64_t count) {
  std::string bytes(static_cast<size_t>(count), '\0');
  ssize_t n = pread(descriptor, bytes.data(), bytes.size(), place);
  bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return bytes;
}

int64_t entries_begin(int64_t block) {
  return block == 0 ? kTimesHead : block * kTimesBlock;
}

}  // namespace

LogTimes::LogTimes(int descriptor) : descriptor_(descriptor) {
  struct stat info;
  if (descriptor < 0 || fstat(descriptor, &info) != 0) return;
  blocks_ = (info.st_size + kTimesBlock - 1) / kTimesBlock;
  // A last block without a whole entry yet.
  while (blocks_ > 0 && info.st_size < entries_begin(blocks_ - 1) + kTimesFirst)
    --blocks_;
}

std::optional<TimeEntry> LogTimes::first_of(int64_t block) const {
  auto entries = decode_times(read_at(descriptor_, entries_begin(block), kTimesFirst));
  if (entries.empty()) return std::nullopt;
  return entries.front();
}

// The last block whose first entry is `before` what is looked for, or the first block.
template <typename Before>
int64_t LogTimes::last_block(Before before) {
  int64_t low = 0, high = blocks_;  // low's first entry is before, high's is not
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    auto first = first_of(middle);
    (first && before(*first) ? low : high) = middle;
  }
  return low;
}

void LogTimes::load(int64_t block) {
  if (block == loaded_) return;
  int64_t begin = entries_begin(block);
  entries_ = decode_times(read_at(descriptor_, begin, (block + 1) * kTimesBlock - begin));
  next_ = block + 1 < blocks_ ? first_of(block + 1) : std::nullopt;
  loaded_ = block;
}

int64_t LogTimes::time_of(int64_t offset) {
  if (blocks_ == 0) return 0;
  bool here = loaded_ >= 0 && !entries_.empty() && entries_.front().offset <= offset &&
              (!next_ || offset < next_->offset);
  if (!here) load(last_block([&](const TimeEntry& entry) { return entry.offset <= offset; }));
  auto after = std::upper_bound(
      entries_.begin(), entries_.end(), offset,
      [](int64_t wanted, const TimeEntry& entry) { return wanted < entry.offset; });
  return after == entries_.begin() ? 0 : std::prev(after)->time_us;
}

std::optional<TimeEntry> LogTimes::first_since(int64_t time_us) {
  if (blocks_ == 0) return std::nullopt;
  load(last_block([&](const TimeEntry& entry) { return entry.time_us < time_us; }));
  auto found = std::lower_bound(
      entries_.begin(), entries_.end(), time_us,
      [](const TimeEntry& entry, int64_t wanted) { return entry.time_us < wanted; });
  if (found != entries_.end()) return *found;
  return next_;
}

}  // namespace muster
