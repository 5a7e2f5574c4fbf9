// SPDX-License-Identifier: Apache-2.0
#include "supervisor/status/address_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "loop/unique_fd.h"
#include "supervisor/logs/retention.h"

namespace muster {

namespace {

constexpr size_t kMaxAddress = 4096;

std::string file_in(const std::string& run_dir, const char* name) {
  return run_dir + "/" + name;
}

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(errno, "write " + path);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

std::string this_host() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

Result<void> write_address_file(const std::string& run_dir, const std::string& url) {
  const std::string path = file_in(run_dir, kAddressFile);
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return errno_error(errno, "create " + fresh);
  Result<void> done = write_all(fd.get(), url + "\n" + this_host() + "\n", fresh);
  if (done && ::rename(fresh.c_str(), path.c_str()) != 0) done = errno_error(errno, path);
  if (!done) ::unlink(fresh.c_str());
  return done;
}

void remove_address_file(const std::string& run_dir) {
  ::unlink(file_in(run_dir, kAddressFile).c_str());
}

std::optional<RunAddress> read_address_file(const std::string& run_dir) {
  const std::string path = file_in(run_dir, kAddressFile);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::string text(kMaxAddress, '\0');
  ssize_t count = 0;
  do {
    count = ::read(fd.get(), text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return std::nullopt;
  text.resize(static_cast<size_t>(count));
  const size_t url_end = text.find('\n');
  const size_t host_end = url_end == std::string::npos ? url_end : text.find('\n', url_end + 1);
  if (url_end == 0 || host_end == std::string::npos) return std::nullopt;
  return RunAddress{text.substr(0, url_end), text.substr(url_end + 1, host_end - url_end - 1)};
}

bool run_lives(const std::string& run_dir) {
  UniqueFd fd(::open(file_in(run_dir, kRunLockFile).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  // A shared lock: two who look at the same time are not taken for a muster by each other.
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace muster
