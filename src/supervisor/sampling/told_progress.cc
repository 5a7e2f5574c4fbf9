// SPDX-License-Identifier: Apache-2.0
#include "supervisor/sampling/told_progress.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "supervisor/sampling/progress_track.h"

namespace muster {

namespace {

// What the file may hold in memory until that is given back: a worker may append for weeks.
constexpr off_t kMostKept = off_t{64} * 1024;
constexpr off_t kBlock = 512;  // as stat counts them
constexpr off_t kPage = 4096;

// All but its end, whichever way the worker writes: the file stays as long as it is.
void give_back(const UniqueFd& file, const struct stat& info) {
  const off_t end = (info.st_size - static_cast<off_t>(kMaxReport)) / kPage * kPage;
  if (info.st_blocks * kBlock <= kMostKept || end <= 0) return;
  ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end);
}

bool begins_with_digit(std::string_view line) {
  const size_t at = line.find_first_not_of(" \t");
  return at != std::string_view::npos && line[at] >= '0' && line[at] <= '9';
}

std::string_view last_line(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Progress parse_told_progress(std::string_view text) {
  const std::string_view line = last_line(text);
  if (line.empty()) return {};
  if (line.front() == '{') return parse_report(line);
  if (begins_with_digit(line)) return parse_progress("step " + std::string(line));
  return parse_progress(line);
}

// Whoever writes may have cut it a moment ago: then it says nothing, and will soon.
ToldProgress read_told_progress(const UniqueFd& file) {
  struct stat info {};
  // Nobody has written: it is as old as it was made.
  if (::fstat(file.get(), &info) != 0 || info.st_size == 0) return {};
  ToldProgress told;
  told.time_us = int64_t{info.st_mtim.tv_sec} * 1'000'000 + info.st_mtim.tv_nsec / 1000;
  char bytes[kMaxReport];
  const off_t from = std::max<off_t>(0, info.st_size - static_cast<off_t>(sizeof bytes));
  const ssize_t got = ::pread(file.get(), bytes, sizeof bytes, from);
  if (got > 0) told.progress = parse_told_progress({bytes, static_cast<size_t>(got)});
  give_back(file, info);
  return told;
}

}  // namespace muster
