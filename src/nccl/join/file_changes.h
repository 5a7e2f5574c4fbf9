// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loop/unique_fd.h"
#include "nccl/core/operation.h"

namespace muster::comm::detail {

// Waits for a file to change: woken by inotify, and by itself after pauses that grow, because what
// other hosts write to a shared file system makes no event here, and because a user may have only
// so many inotify instances. Made before looking at the file, so that no change is missed.
class FileChanges {
 public:
  static constexpr std::chrono::milliseconds kFirstPause{5};
  static constexpr std::chrono::milliseconds kLongestPause{250};

  explicit FileChanges(int file);

  // Until something may have changed, the deadline at the latest.
  void wait(Deadline deadline);

 private:
  UniqueFd events_;  // empty where there is no inotify
  std::chrono::milliseconds pause_;
};

}  // namespace muster::comm::detail
