// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "loop/result.h"
#include "loop/unique_fd.h"
#include "supervisor/browse/log_layout.h"

namespace muster {

// One open log: bytes of the stream by their offset, whatever is done to the file meanwhile.
// Blocks, so it belongs on the pool, and lives only as long as one piece of work there.
//
// Nobody is locked out: the cut of a log publishes each of its steps in the record beside the log
// before it overwrites what the record has spoken of (times_format.h), so bytes are right if the
// record was the same before and after they were read; else they are read again.
class LogBytes {
 public:
  // Nothing: there is no such log.
  static Result<std::optional<LogBytes>> open(const std::string& path);

  // Tells this log from another that has taken its name, or that starts again.
  struct Identity {
    uint64_t device = 0;
    uint64_t file = 0;
    int64_t started_us = 0;
    bool operator==(const Identity&) const = default;
  };
  const Identity& identity() const { return identity_; }

  // As it was when it was opened or last read.
  const LogLayout& layout() const { return layout_; }
  const LogCut& cut() const { return cut_; }
  int64_t size() const { return layout_.size(); }

  // Takes the size of now.
  Result<void> look();

  // At most `count` bytes from `offset` on, fewer at the hole and at the end, none only at the end.
  // If `offset` is in the hole they begin behind it. They stay until the next call.
  struct Piece {
    int64_t offset = 0;
    std::string_view bytes;
  };
  Result<Piece> read(int64_t offset, int64_t count);

  // Not on a file system that others change as well, without this kernel's knowing.
  bool on_local_disk() const;

  // The descriptor of the file of times, -1 if there is none.
  int times_descriptor() const { return times_.get(); }

 private:
  explicit LogBytes(std::string path) : path_(std::move(path)) {}

  std::string read_record();
  Result<std::string_view> read_part(const LogLayout::Part& part);

  std::string path_;
  UniqueFd log_;
  UniqueFd times_;
  Identity identity_;
  std::string record_;  // as it was read for layout_; empty without
  LogCut cut_;
  LogLayout layout_;
  std::string buffer_;
};

}  // namespace muster
