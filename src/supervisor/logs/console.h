// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/logs/console_output.h"
#include "supervisor/logs/fold.h"
#include "supervisor/logs/line_splitter.h"
#include "supervisor/logs/prefix.h"

namespace muster {

// One of muster's two consoles: turns the streams of many workers into whole lines with prefixes,
// live progress and muster's own lines among them. Owned by JobLogs.
//
// A line's beginning is held for kHold, then shown and left open; whoever else writes ends it first
// with a newline. Lines redrawn with '\r' are shown at most every kProgressInterval: on a terminal
// in its last row, which is erased before anything else is written; elsewhere, if only one rank
// writes here, in place, and otherwise as a line now and then. Their last state is always shown.
// When the output cannot keep up, whole lines are skipped and counted.
class Console {
 public:
  static constexpr Milliseconds kHold{200};
  static constexpr Milliseconds kProgressInterval{200};
  static constexpr Milliseconds kRowInterval{100};  // for the row that all ranks share
  static constexpr Milliseconds kProgressLines{30'000};

  using SourceId = int;  // never reused

  struct Settings {
    int ranks = 1;  // how many write here
    bool fold = false;
    bool files_kept = true;         // the files have what is skipped here
    std::function<void()> on_room;  // wants_pause() may have changed
  };

  Console(Loop& loop, int fd, Settings settings);

  SourceId add_source(int rank, Prefix prefix, bool raw);
  void feed(SourceId source, std::string_view bytes);
  void end(SourceId source);

  // A line of muster's own, without its newline; never skipped.
  void say(std::string_view line);

  bool wants_pause() { return output_.wants_pause(); }
  bool idle() const { return output_.idle() && (!fold_ || fold_->empty()); }
  uint64_t bytes_written() const { return output_.bytes_written(); }

 private:
  using Kind = LineSplitter::Kind;

  struct Source {
    SourceId id = 0;
    int rank = 0;
    Prefix prefix;
    bool raw = false;
    LineSplitter splitter;
    Clock::time_point hold_until;
    bool in_progress = false;  // `state` is its unfinished line
    bool undrawn = false;      // `state` is newer than what the console shows
    std::string state;
    Clock::time_point next_draw;
  };

  void on_piece(Source& source, Kind kind, std::string_view text);
  void put_raw(Source& source, std::string_view bytes);
  void put_lines(Source& source, std::string_view lines);
  void append_lines(std::string_view prefix, std::string_view lines);
  void put_open(Source& source, std::string_view text);
  void put_close(Source& source, std::string_view text);
  void put_folded(const std::set<int>& ranks, std::string_view line);
  void put_progress(Source& source, std::string_view state);
  void draw(Source& source);
  void draw_in_row(Source& source, std::string_view text);
  Clock::time_point draw_time(const Source& source) const;
  void draw_due(Clock::time_point now);
  void release_due(Clock::time_point now);
  void redraw();
  void start_line();
  bool continues_in_place(const Source& source) const;
  bool has_room(size_t bytes, int64_t lines);
  void skip(int64_t lines);
  void lose(int64_t lines);
  void say_skipped();
  void on_room();
  void flush();
  std::string_view prefix_of(Source& source);
  Fold::Emit emit_folded();

  void schedule(Clock::time_point at);
  void on_tick();

  Loop& loop_;
  Settings settings_;
  ConsoleOutput output_;
  std::map<SourceId, Source> sources_;
  SourceId last_id_ = 0;
  SourceId open_ = 0;   // whose unfinished line ends the console, 0 if none
  SourceId drawn_ = 0;  // whose progress stands in the terminal's last row
  Clock::time_point next_row_;
  SourceId erased_ = 0;  // whose progress was erased for the lines being written
  std::unique_ptr<Fold> fold_;
  std::map<int, Prefix> fold_prefixes_;  // by rank
  bool skipping_ = false;
  int64_t skipped_ = 0;       // lines that nothing was said about yet
  int64_t said_skipped_ = 0;  // in a notice that may not be written yet
  Owned<Timer> tick_;
  Clock::time_point tick_at_;
};

}  // namespace muster
