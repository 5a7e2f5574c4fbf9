// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "loop/fd_watch.h"
#include "loop/unique_fd.h"
#include "supervisor/logs/file_queue.h"

namespace muster {

// Reads one stream of a worker from its pipe or pseudo-terminal: bytes go to the file first and to
// the other sinks only when they are there. At most kInFlight chunks are between pipe and file;
// past that, and while a sink asks for a pause, the pipe is left alone and the worker waits in its
// write. Owned by its worker's slot in JobLogs.
class StreamReader {
 public:
  struct Hooks {
    std::function<void()> on_first_output;
    std::function<void(size_t bytes)> on_read;  // a chunk was taken from the pipe
    std::function<bool()> may_go_on;            // false while a sink asks for a pause
    std::function<bool()> may_deliver;          // the next chunk may go to the other sinks
    std::function<void(std::string_view bytes)> on_bytes;  // in the file, or lost there
    std::function<void(const LogFile::Written& written)> on_file_error;
    // Once: the stream has ended and every byte has been through on_bytes.
    std::function<void()> on_end;
  };

  static constexpr int kInFlight = 4;

  // `file` may be null: no file is kept.
  static Result<std::unique_ptr<StreamReader>> start(Loop& loop, ChunkPool& chunks,
                                                     std::shared_ptr<PoolGate> gate, UniqueFd fd,
                                                     std::shared_ptr<LogFile> file, Hooks hooks);

  // may_go_on() may have changed.
  void resume();

  // Takes what the pipe holds now and ends, whoever else still has the other end.
  void end_soon();

  bool ended() const { return ended_; }
  int descriptor() const { return fd_.get(); }  // -1 after its end

 private:
  StreamReader(ChunkPool& chunks, UniqueFd fd, Hooks hooks)
      : chunks_(chunks), fd_(std::move(fd)), hooks_(std::move(hooks)) {}

  void read_some();
  void on_chunk(Chunk chunk);
  void on_written(std::vector<Chunk> chunks, const LogFile::Written& written);
  void deliver();
  void go_on();
  void wait_for_more();
  void at_end();

  ChunkPool& chunks_;  // of the JobLogs that owns us
  UniqueFd fd_;
  Hooks hooks_;
  std::unique_ptr<FileQueue> file_;
  Owned<FdWatch> watch_;
  int in_flight_ = 0;
  std::deque<Chunk> undelivered_;  // in the file, waiting for the other sinks; also in flight
  bool seen_output_ = false;
  bool last_call_ = false;  // end_soon()
  size_t last_call_left_ = 0;
  bool at_end_ = false;
  bool finishing_ = false;
  bool ended_ = false;
};

}  // namespace muster
