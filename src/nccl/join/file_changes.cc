// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/file_changes.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "nccl/join/roll_call.h"

namespace muster::comm::detail {

FileChanges::FileChanges(int file) : events_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (events_ && inotify_add_watch(events_.get(), path.c_str(), IN_MODIFY | IN_ATTRIB) < 0)
    events_.reset();
  begin();
}

// With events the pauses are only for other hosts' writes.
void FileChanges::begin() {
  pause_ = events_ ? kLongestPause : kFirstPause;
}

void FileChanges::wait(Deadline deadline) {
  const auto pause = std::min<std::chrono::milliseconds>(pause_, time_left(deadline));
  pause_ = std::min(pause_ * 3 / 2, kLongestPause);
  pollfd poller{events_.get(), POLLIN, 0};
  if (::poll(&poller, 1, static_cast<int>(pause.count())) <= 0) return;
  alignas(inotify_event) char ignored[4096];
  while (::read(events_.get(), ignored, sizeof ignored) > 0) {
  }
}

std::unique_ptr<FileChanges> FileWatchers::take(int file) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<FileChanges> changes = std::move(idle_.back());
      idle_.pop_back();
      changes->begin();
      return changes;
    }
  }
  return std::make_unique<FileChanges>(file);
}

void FileWatchers::put_back(std::unique_ptr<FileChanges> changes) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(changes));
}

}  // namespace muster::comm::detail
