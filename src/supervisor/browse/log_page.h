// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// Reading a run's logs by place. All positions are *stream offsets*: how many bytes the worker had
// written before. For a complete log that is the place in the file. A bounded log whose middle was
// cut out (logs/log_file.h) keeps the offsets of what is left, so a position never changes its
// meaning while somebody follows.

struct LogLine {
  int64_t offset = 0;   // of its first byte
  int64_t number = -1;  // from 0; -1 while the lines before it are not counted
  int64_t time_us = 0;  // unix time at which it came (the start of it); 0 if unknown
  int64_t size = 0;     // bytes, without the newline
  std::string text;     // as written, without the newline; shorter than `size` if it was cut
  // Bytes of the line before `text`: above 0 only if it was cut and had been redrawn with carriage
  // returns. Then text is its newest states, otherwise its beginning.
  int64_t skipped = 0;
  bool ended = true;  // false: the stream's last line has no newline (yet)
};

// Lines that follow each other.
struct LogPage {
  bool exists = false;   // the stream has written something
  bool growing = false;  // somebody may still write to it; set by whoever knows the worker
  int64_t offset = 0;    // of the first line
  // Where the next page begins: behind the last line, or at it if that has not ended, so that it
  // comes again when it has grown.
  int64_t end = 0;
  int64_t size = 0;          // of the stream so far
  int64_t total_lines = -1;  // of the stream so far; -1 while not counted
  // What a bounded log has left out, [hole_begin, hole_end); no line of a page lies across it.
  int64_t hole_begin = 0;
  int64_t hole_end = 0;
  std::vector<LogLine> lines;
};

struct LogQuery {
  enum class From {
    kOffset,  // the line that contains or begins at `position`, and those after it
    kLine,    // from line number `position`
    kTail,    // the last ones; with `position` > 0 the last ones before that offset
    kTime,    // from the first line that came at or after `position`, unix microseconds
  };
  From from = From::kTail;
  int64_t position = 0;
  int64_t max_lines = 200;
  int64_t max_bytes = int64_t{1} << 20;  // of text; at least one line is given
  int64_t max_line = 16 << 10;           // a longer line's text is cut to this
};

}  // namespace muster
