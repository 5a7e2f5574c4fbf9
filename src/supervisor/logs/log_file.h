// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "loop/result.h"
#include "loop/unique_fd.h"
#include "supervisor/logs/times_file.h"

namespace muster {

// The file of one stream. All calls but the two that make it block and belong on the pool, one at a
// time.
//
// A complete file is only appended to. A bounded one keeps its head and its newest part: when it
// has grown past the limit, the middle is cut out by moving the newest part up behind a marker, in
// place, a piece with each append, so that no single append waits long. It is one plain readable
// file at every moment (`tail -f` sees it shrink and starts it again), it needs nothing from the
// file system, and a crash in the middle of a cut loses nothing that was to be kept.
class LogFile {
 public:
  static constexpr int64_t kMinLimit = 64 * 1024;
  static constexpr int64_t kMarkerLength = 98;  // the line that stands for what was cut out

  // `limit` 0 makes a complete file. Smaller limits than kMinLimit are raised to it.
  static Result<std::shared_ptr<LogFile>> create(std::string path, int64_t limit);

  // A file that comes into being with its first bytes, so that a silent stream costs nothing. If it
  // cannot be made, append() says so.
  static std::shared_ptr<LogFile> create_later(std::string path, int64_t limit);

  // From here on keeps when its bytes came, and what was cut out, in the file `path`.
  void keep_times(std::string path) { times_ = std::make_unique<TimesFile>(std::move(path)); }

  struct Written {
    int error = 0;     // errno of the write that failed
    int64_t lost = 0;  // bytes of this append that are not in the file
  };
  // `arrived_us` is the unix time at which they came.
  Written append(std::string_view bytes, int64_t arrived_us = 0);

  // Ends a cut that is under way.
  void finish();
  bool finished() const { return !cutting_; }

  const std::string& path() const { return path_; }

 private:
  LogFile(std::string path, int64_t limit);
  int open_file();

  Written write_at_end(std::string_view bytes);
  void note_outside_changes();
  void note_arrival(int64_t arrived_us);
  void note_cut();
  void begin_cut();
  void go_on_cutting(int64_t budget);
  void write_marker();
  int64_t line_start_before(int64_t offset) const;

  std::string path_;
  UniqueFd fd_;
  int64_t limit_;
  int64_t size_ = 0;  // kept for bounded files and those with times

  // With times: bytes and newlines (of bounded files) of the stream so far.
  std::unique_ptr<TimesFile> times_;
  int64_t stream_size_ = 0;
  int64_t stream_lines_ = 0;  // -1: unknown, somebody has shortened the file
  bool cut_to_note_ = false;

  // The cut, for bounded files.
  int64_t head_end_ = 0;  // 0: nothing was cut yet; the marker stands here
  int64_t left_out_ = 0;
  int64_t counted_to_ = 0;  // of the stream, when the last cut began
  int64_t counted_lines_ = 0;
  bool cutting_ = false;
  int64_t from_ = 0;  // the next byte to move
  int64_t to_ = 0;    // where it goes
};

}  // namespace muster
