// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string_view>

#include "loop/fd_watch.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/unique_fd.h"

namespace muster {

// Bytes that grow without being cleared first.
struct ByteBuffer {
  std::unique_ptr<char[]> data;
  size_t size = 0;
  size_t capacity = 0;

  void reserve(size_t more);
  void append(std::string_view bytes) {
    if (bytes.empty()) return;
    reserve(bytes.size());
    std::memcpy(data.get() + size, bytes.data(), bytes.size());
    size += bytes.size();
  }
};

// Writes bytes to muster's own stdout or stderr without ever blocking the loop. A terminal or pipe
// is opened anew, so that O_NONBLOCK stays ours alone (the shell and other programs share the
// inherited description); all else is written through the pool. Owned by a Console.
class ConsoleOutput {
 public:
  // What may wait to be written, apart from what is being written.
  static constexpr size_t kBacklog = 4 * 1024 * 1024;

  struct Hooks {
    std::function<void()> on_room;  // less is waiting, or a pause is over
    // A write failed (not a closed pipe, which is silent): these lines are not on the console.
    std::function<void(int64_t lines)> on_lost;
  };

  // `fd` stays open as long as the process.
  ConsoleOutput(Loop& loop, int fd, Hooks hooks);

  // Append to it (whole pieces, at most room() bytes unless they must not be lost), then flush().
  ByteBuffer& buffer() { return next_; }
  size_t room() const { return next_.size < kBacklog ? kBacklog - next_.size : 0; }
  void flush();

  // Readers should pause: the output is behind but moving, and has not used up its patience. A
  // regular file gets all the pauses it needs as long as each write ends soon, a pipe while it is
  // read fast and otherwise a share of the time, a terminal none: it skips.
  bool wants_pause();

  bool idle() const { return closed_ || (!writing_ && next_.size == 0); }
  bool terminal() const { return terminal_; }
  int columns() const;  // of the terminal
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  struct Write;
  void start_write();
  void write_in_pool();
  void write_when_ready();
  void on_write_error(int error);
  void made_progress();
  void end_pause();

  Loop& loop_;
  int fd_;
  Hooks hooks_;
  bool terminal_ = false;
  bool regular_ = false;
  bool closed_ = false;   // the reader is gone
  UniqueFd reopened_;     // set: written when ready; empty: through the pool
  Owned<FdWatch> watch_;  // waits for reopened_
  ByteBuffer next_;
  std::shared_ptr<Write> write_;  // memory of the running and the next write
  bool writing_ = false;
  uint64_t bytes_written_ = 0;

  Milliseconds patience_;
  Clock::time_point patience_since_;  // when patience_ was true
  bool pausing_ = false;
  Owned<Timer> pause_end_;

  std::shared_ptr<ConsoleOutput*> self_;  // pool work that comes back after our end finds this gone
};

}  // namespace muster
