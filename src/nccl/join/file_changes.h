// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "loop/unique_fd.h"
#include "nccl/core/operation.h"

namespace muster::comm::detail {

// Waits for a file to change: woken by inotify, and by itself after pauses that grow, because what
// other hosts write to a shared file system makes no event here, and because a user may have only
// so many inotify instances. One caller at a time; begun before looking at the file, so that no
// change is missed.
class FileChanges {
 public:
  static constexpr std::chrono::milliseconds kFirstPause{5};
  static constexpr std::chrono::milliseconds kLongestPause{250};

  explicit FileChanges(int file);

  // Before a new wait: the pauses begin small again.
  void begin();

  // Until something may have changed since the last call, the deadline at the latest.
  void wait(Deadline deadline);

 private:
  UniqueFd events_;  // empty where there is no inotify
  std::chrono::milliseconds pause_{};
};

// The file's watchers that nobody uses at the moment: making one is quick, but to close one costs
// the kernel some ten milliseconds. Shared by a store and its clones. Any thread.
class FileWatchers {
 public:
  std::unique_ptr<FileChanges> take(int file);
  void put_back(std::unique_ptr<FileChanges> changes);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<FileChanges>> idle_;
};

}  // namespace muster::comm::detail
