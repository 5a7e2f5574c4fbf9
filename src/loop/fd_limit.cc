// SPDX-License-Identifier: Apache-2.0
#include "loop/fd_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "loop/unique_fd.h"

namespace muster {

namespace {

// muster's own: loop, console, files, signals.
constexpr uint64_t kOwnDescriptors = 64;
// Two pipes, two log files and the files of their times, a pidfd, a cgroup file, a page and a file
// for its progress.
constexpr uint64_t kDescriptorsPerWorker = 10;
// Each process group of a PyTorch worker opens one or two.
constexpr uint64_t kStoreConnectionsPerWorker = 10;

}  // namespace

DescriptorNeed descriptors_for(int workers) {
  const auto count = static_cast<uint64_t>(workers);
  const uint64_t own = kOwnDescriptors + kDescriptorsPerWorker * count;
  return {own, own + kStoreConnectionsPerWorker * count};
}

FdLimit raise_fd_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  FdLimit result{limit.rlim_cur, limit.rlim_cur, limit.rlim_max};
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) result.now = limit.rlim_max;
  }
  return result;
}

void make_room_for_descriptors(const FdLimit& limit, int workers) {
  const uint64_t needed = descriptors_for(workers).most;
  const uint64_t last = std::min<uint64_t>({needed, limit.now, INT_MAX}) - 1;
  const UniqueFd high(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, static_cast<int>(last)));
}

std::optional<std::string> fd_limit_too_low(const FdLimit& limit, int workers) {
  const uint64_t needed = descriptors_for(workers).most;
  if (limit.now >= needed) return std::nullopt;
  return "the limit of " + std::to_string(limit.now) + " open files is too low for " +
         std::to_string(workers) + " workers, which may need " + std::to_string(needed) +
         ": raise the hard limit (ulimit -Hn " + std::to_string(needed) + ")";
}

}  // namespace muster
