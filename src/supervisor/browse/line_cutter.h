// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/browse/log_page.h"

namespace muster {

// Cuts a stream's bytes into the lines of pages. Pure; holds at most what its limits say, however
// long a line is.
class LineCutter {
 public:
  struct Limits {
    int64_t max_lines = 0;
    int64_t max_bytes = 0;  // of text; one line always fits
    int64_t max_line = 0;
  };
  // `offset` is that of the first byte; `number` that of its line, -1 if unknown.
  LineCutter(int64_t offset, int64_t number, Limits limits);

  // Takes bytes that follow those before. False when the page is full: what is behind next() is
  // not taken then, and comes again after take().
  bool feed(std::string_view bytes);
  bool full() const { return full_; }

  // Nothing follows for now: the beginning of a line, if there is one, becomes a line that has not
  // ended.
  void end_open();
  // The stream goes on at `offset` with line `number`: what there is of the line before it ends.
  bool jump(int64_t offset, int64_t number);
  // From here on up to the next line's start nothing is taken.
  void skip_line() { skipping_ = true; }
  bool skipping() const { return skipping_; }

  // Up to here bytes were taken.
  int64_t position() const { return position_; }
  // Behind the last whole line, which is where the next one begins.
  int64_t next() const { return line_.offset; }
  void set_number(int64_t number) { line_.number = number; }

  bool empty() const { return lines_.empty(); }
  bool has_open() const { return line_.size > 0 && !skipping_; }
  // What there is of the last line, as a line that has not ended.
  LogLine open_line() const;
  // The lines so far; the page is empty again.
  std::vector<LogLine> take();

 private:
  bool take_line_bytes(std::string_view bytes);
  bool end_line(int64_t next_offset);
  void begin_line(int64_t offset, int64_t number);
  bool fits(int64_t text) const;
  LogLine cut_line() const;

  Limits limits_;
  int64_t position_;
  LogLine line_;      // that is being taken, its text kept in head_ and tail_
  std::string head_;  // its first max_line bytes
  std::string tail_;  // of a longer one the last max_line bytes, and up to as many before them
  bool skipping_ = false;
  bool full_ = false;
  int64_t text_bytes_ = 0;
  std::vector<LogLine> lines_;
};

}  // namespace muster
