// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "loop/loop.h"
#include "supervisor/logs/log_file.h"

namespace muster {

// A piece of a stream on its way from the pipe to the file and on to the console.
struct Chunk {
  static constexpr size_t kCapacity = 128 * 1024;

  std::unique_ptr<char[]> data{new char[kCapacity]};
  size_t size = 0;
  int64_t arrived_us = 0;  // unix time at which it was read

  std::string_view bytes() const { return {data.get(), size}; }
};

// Memory of chunks, used again. A chunk that was filled a little stays resident a little.
class ChunkPool {
 public:
  Chunk take();
  void give_back(Chunk chunk);

 private:
  static constexpr size_t kKept = 16;
  std::vector<Chunk> free_;
};

// Lets only so many writes to log files into libuv's pool at once that a stalled log disk leaves a
// thread for everything else. Lives as long as the last work that it has let in.
class PoolGate : public std::enable_shared_from_this<PoolGate> {
 public:
  explicit PoolGate(Loop& loop) : loop_(loop) {}
  void run(std::function<void()> work, std::function<void()> done);

 private:
  static constexpr int kAtOnce = 3;  // of the pool's five threads

  struct Job {
    std::function<void()> work, done;
  };
  void start(Job job);

  Loop& loop_;
  int running_ = 0;
  std::deque<Job> waiting_;
};

// Appends to one log file through the pool: what has come meanwhile goes in one piece of work.
// Owned by the stream or filter that writes; dropping it leaves a running write to end by itself.
class FileQueue {
 public:
  // In the loop, after chunks are in the file (or lost, as `written` says).
  using OnWritten = std::function<void(std::vector<Chunk> chunks, LogFile::Written written)>;

  FileQueue(std::shared_ptr<PoolGate> gate, std::shared_ptr<LogFile> file, OnWritten on_written);

  void append(Chunk chunk);

  // After the chunks so far: ends what the file has under way, then calls back.
  void finish(std::function<void()> on_finished);

  const LogFile& file() const { return *file_; }

 private:
  struct Write;
  void next();

  std::shared_ptr<PoolGate> gate_;
  std::shared_ptr<LogFile> file_;
  OnWritten on_written_;
  std::vector<Chunk> waiting_;
  bool writing_ = false;
  std::function<void()> on_finished_;
  // Pool work that comes back after our end finds this gone.
  std::shared_ptr<FileQueue*> self_;
};

}  // namespace muster
