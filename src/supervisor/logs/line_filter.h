// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/logs/file_queue.h"
#include "supervisor/logs/prefix.h"

namespace muster {

// attempt_<n>/filtered_stdout.log or its sibling: the lines of all teed workers that contain one of
// the needles, each with its prefix. Owned by JobLogs, for one attempt.
class FilterFile {
 public:
  struct Hooks {
    std::function<void()> on_room;  // wants_pause() may have changed
    std::function<void(const LogFile::Written& written)> on_file_error;
  };

  FilterFile(ChunkPool& chunks, std::shared_ptr<PoolGate> gate, std::shared_ptr<LogFile> file,
             std::vector<std::string> needles, Hooks hooks);

  bool matches(std::string_view line) const;
  void append(std::string_view prefix, std::string_view line);
  void flush();

  // Too much waits for the disk.
  bool wants_pause() const { return queued_ > kMaxQueued; }
  bool idle() const { return queued_ == 0 && pending_.size == 0; }
  const std::string& path() const { return queue_.file().path(); }

 private:
  static constexpr int kMaxQueued = 8;

  void put(std::string_view bytes);

  ChunkPool& chunks_;  // of the JobLogs that owns us
  std::vector<std::string> needles_;
  Hooks hooks_;
  FileQueue queue_;
  Chunk pending_;
  int queued_ = 0;
};

// One stream's way into a FilterFile: puts its lines together.
class LineFilter {
 public:
  LineFilter(FilterFile& file, Prefix prefix) : file_(file), prefix_(std::move(prefix)) {}

  void feed(std::string_view bytes);
  void end();

 private:
  static constexpr size_t kMaxLine = 1 << 20;  // a longer one is looked at in pieces

  void line(std::string_view text);

  FilterFile& file_;
  Prefix prefix_;
  std::string partial_;
};

}  // namespace muster
