// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loop/gzip.h"
#include "supervisor/browse/log_bytes.h"

namespace muster {

// A log and its name in the archive.
struct ArchiveEntry {
  std::string name;
  std::string path;
};

// Packs logs of this machine, piece by piece on the pool, into a part of a .tar.gz: a whole gzip
// stream without the tar's end, so that several parts one behind the other, and archive_end(), are
// an archive. Made by LogArchive, which gives it its turns.
class ArchiveWork {
 public:
  static constexpr size_t kMaxTroubles = 100;

  explicit ArchiveWork(std::vector<ArchiveEntry> entries) : entries_(std::move(entries)) {}

  // One piece; true when all is packed.
  bool run();

  std::string take_packed() { return std::exchange(packed_, {}); }
  // What could not be packed as it should.
  const std::vector<std::string>& troubles() const { return troubles_; }

 private:
  struct OpenLog {
    LogBytes bytes;
    int64_t position = 0;
    int64_t end = 0;
    std::string marker;  // that stands for the hole; "" behind it
  };

  bool pack(const ArchiveEntry& entry);
  Result<bool> open(const ArchiveEntry& entry);
  void put(std::string_view bytes);
  void end_file();
  void note(std::string trouble);

  const std::vector<ArchiveEntry> entries_;
  size_t next_ = 0;
  std::optional<OpenLog> log_;
  GzipWriter gzip_;
  std::string packed_;
  int64_t size_ = 0;  // of the file that is being packed
  int64_t left_ = 0;  // bytes of it that are still to come
  int64_t budget_ = 0;
  std::vector<std::string> troubles_;
};

// Ends the archive. Notes, if there are any, are a file of their own in it.
std::string archive_end(const std::vector<std::string>& notes, int64_t unix_time);

}  // namespace muster
