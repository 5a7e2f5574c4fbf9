// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/recordings.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "supervisor/job/recording.h"

namespace muster {

namespace {

// Whether somebody reads it: without a reader, or where it is not there, it does not open.
bool write_into_pipe(const std::string& path) {
  ::signal(SIGPIPE, SIG_IGN);  // the reader may go between the two calls
  const UniqueFd pipe(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  return pipe && ::write(pipe.get(), "1", 1) == 1;
}

}  // namespace

void Recordings::ask(int rank, const std::string& dump) {
  const std::string pipe = dump + std::string(kRecordingPipe);
  if (dump.empty() || ::access(pipe.c_str(), F_OK) != 0) return;
  if (!watcher_) watcher_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  const size_t slash = dump.rfind('/');
  // Before it is asked, lest the answer be missed.
  const int watch = ::inotify_add_watch(watcher_.get(), dump.substr(0, slash).c_str(),
                                        IN_MODIFY | IN_CLOSE_WRITE);
  if (watch < 0 || !write_into_pipe(pipe)) return;
  dumps_.emplace(watch, Dump{rank, dump, dump.substr(slash + 1)});
  asked_ = Clock::now();
}

std::vector<int> Recordings::collect(const std::string& folder, Milliseconds patience) {
  const Clock::time_point deadline = asked_ + patience;
  for (take_news(); !all_whole(); take_news()) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
    pollfd news{watcher_.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&news, 1, static_cast<int>(left)) == 0) break;
  }
  std::vector<int> missing;
  for (const auto& [watch, dump] : dumps_) {
    // Moved, not copied: nobody writes into it any more, and the next one is a file of its own.
    const std::string place = folder + "/" + dump.name;
    if (!dump.whole || ::rename(dump.path.c_str(), place.c_str()) != 0)
      missing.push_back(dump.rank);
  }
  return missing;
}

void Recordings::take_news() {
  char news[4096];
  for (ssize_t size; (size = ::read(watcher_.get(), news, sizeof news)) > 0;) {
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, news + at, sizeof event);
      const char* name = news + at + sizeof event;
      const auto [begin, end] = dumps_.equal_range(event.wd);
      for (auto it = begin; it != end; ++it) {
        if (event.len > 0 && it->second.name == name)
          it->second.whole = (event.mask & IN_CLOSE_WRITE) != 0;
      }
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
}

bool Recordings::all_whole() const {
  return std::all_of(dumps_.begin(), dumps_.end(),
                     [](const auto& entry) { return entry.second.whole; });
}

}  // namespace muster
