// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/retention.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "loop/unique_fd.h"

namespace muster {

namespace fs = std::filesystem;

namespace {

std::string lock_path(const fs::path& run) {
  return (run / kRunLockFile).string();
}

// Empty while the run's muster holds its lock.
UniqueFd lock_dead_run(const fs::path& run) {
  UniqueFd fd(open(lock_path(run).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd && flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
}

// The lock file goes last: without it a removal that is cut short would never be taken up again.
void remove_run(const fs::path& run) {
  std::error_code error, ignored;
  for (fs::directory_iterator it(run, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename() != kRunLockFile) fs::remove_all(it->path(), ignored);
  }
  fs::remove_all(run, ignored);
}

}  // namespace

std::vector<RunEntry> list_runs(const std::string& base) {
  std::vector<RunEntry> runs;
  std::error_code error;
  for (fs::directory_iterator it(base, error), end; !error && it != end; it.increment(error)) {
    struct stat lock;
    if (it->is_symlink(error) || lstat(lock_path(it->path()).c_str(), &lock) != 0) continue;
    int64_t started = int64_t{lock.st_mtim.tv_sec} * 1'000'000'000 + lock.st_mtim.tv_nsec;
    bool live = !lock_dead_run(it->path());
    runs.push_back({it->path().filename().string(), started, live});
  }
  return runs;
}

std::vector<std::string> runs_to_remove(std::vector<RunEntry> runs, int keep) {
  std::sort(runs.begin(), runs.end(), [](const RunEntry& a, const RunEntry& b) {
    return a.started_ns > b.started_ns;  // newest first
  });
  std::vector<std::string> names;
  for (size_t i = static_cast<size_t>(std::max(keep, 0)); i < runs.size(); ++i) {
    if (!runs[i].live) names.push_back(runs[i].name);
  }
  std::reverse(names.begin(), names.end());
  return names;
}

void prune_runs(const std::string& base, int keep) {
  for (const std::string& name : runs_to_remove(list_runs(base), keep)) {
    fs::path run = fs::path(base) / name;
    // Held until the folder is gone: of several prunings at once only one removes it.
    UniqueFd lock = lock_dead_run(run);
    if (lock) remove_run(run);
  }
}

void point_latest(const std::string& base, const std::string& name) {
  std::string link = base + "/latest";
  std::string fresh = base + "/.latest." + name;
  if (symlink(name.c_str(), fresh.c_str()) != 0) return;
  if (rename(fresh.c_str(), link.c_str()) != 0) unlink(fresh.c_str());
}

}  // namespace muster
