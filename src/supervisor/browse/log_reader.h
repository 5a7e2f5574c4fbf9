// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "loop/loop.h"
#include "loop/result.h"
#include "supervisor/browse/browse_gate.h"
#include "supervisor/browse/log_page.h"

namespace muster {

class IndexedLog;

// Reads log files of one run on this machine: off the loop, by offset, line or time, whether their
// worker still writes or not. Knows files, not jobs. Keeps a sparse index of lines for the logs
// that were asked for, within a bound. Owned by the status server.
class LogReader {
 public:
  static constexpr size_t kMaxIndexes = 64;  // of logs that nobody reads at the moment
  static constexpr size_t kMaxFollowers = 4'096;
  static constexpr int64_t kMaxBytes = int64_t{1} << 20;  // of one read_bytes()

  explicit LogReader(Loop& loop);
  ~LogReader();

  // `path` is that of the log; a log that does not exist is a page with exists == false. By time,
  // a log without times is the error ENODATA. Lines have numbers and the page a total when they
  // were counted: at once in small logs, in large ones some time after somebody has read in them.
  std::unique_ptr<BrowseTask> read(const std::string& path, LogQuery query,
                                   std::function<void(Result<LogPage>)> on_done);

  // At most `count` (and kMaxBytes) raw bytes from `offset` on; fewer at the end or before a hole.
  struct Bytes {
    int64_t offset = 0;  // where they really begin: behind the hole if that was asked for
    std::string bytes;
    int64_t size = 0;  // of the stream so far
  };
  std::unique_ptr<BrowseTask> read_bytes(const std::string& path, int64_t offset, int64_t count,
                                         std::function<void(Result<Bytes>)> on_done);

  // Pages as the log grows: whole lines from `offset` on, each exactly once, in order; told by the
  // file system, without polling where it can tell. An unfinished last line comes as a page of that
  // one line with ended == false, whose `end` is its own offset: it comes again when it has grown.
  // No page is made while paused. A follower that is more than `max_lag` behind jumps: the next
  // page's offset is then beyond the last one's end. A log that was emptied or replaced starts
  // again: the next page's offset is 0. After an error nothing comes any more.
  struct FollowSettings {
    int64_t offset = 0;
    int64_t max_lag = int64_t{4} << 20;
    int64_t max_bytes = int64_t{256} << 10;  // of a page
    int64_t max_line = 16 << 10;
  };
  class Follower : public BrowseTask {
   public:
    virtual void set_paused(bool paused) = 0;
  };
  // Beyond kMaxFollowers: the error EMFILE.
  std::unique_ptr<Follower> follow(const std::string& path, FollowSettings settings,
                                   std::function<void(Result<LogPage>)> on_page);

  // For whoever reads logs in another way: search, downloads.
  BrowseGate& gate();
  // What is known of a log's lines. To be touched only in pieces of the gate.
  std::shared_ptr<IndexedLog> log(const std::string& path);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster
