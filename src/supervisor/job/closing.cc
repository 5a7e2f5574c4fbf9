// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/closing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "loop/pool.h"
#include "loop/unique_fd.h"

namespace muster {

namespace {

Result<void> write_all(int fd, const std::string& text, const std::string& path) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno_error(errno, "write " + path);
    done += static_cast<size_t>(wrote);
  }
  return {};
}

// /dev/stdout, /dev/null, a FIFO: there is nothing to replace, write into it.
bool is_special(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

}  // namespace

Result<void> write_whole_file(const std::string& path, const std::string& text) {
  if (is_special(path)) {
    // Without O_NONBLOCK a FIFO that nobody reads would keep us here for ever.
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!fd) return errno_error(errno, "open " + path);
    ::fcntl(fd.get(), F_SETFL, O_WRONLY);
    return write_all(fd.get(), text, path);
  }
  std::string beside = path + ".tmp" + std::to_string(::getpid());
  UniqueFd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return errno_error(errno, "create " + beside);
  Result<void> written = write_all(fd.get(), text, beside);
  if (written && ::rename(beside.c_str(), path.c_str()) != 0) {
    written = errno_error(errno, "rename to " + path);
  }
  if (!written) ::unlink(beside.c_str());
  return written;
}

void write_closing_files(Loop& loop, std::vector<ClosingFile> files,
                         std::function<void(std::vector<std::string>)> on_done) {
  auto troubles = std::make_shared<std::vector<std::string>>();
  run_in_pool(
      loop,
      [files = std::move(files), troubles] {
        for (const ClosingFile& file : files) {
          Result<void> written = write_whole_file(file.path, file.text);
          if (!written) troubles->push_back(written.error().message);
        }
      },
      [troubles, on_done = std::move(on_done)] { on_done(std::move(*troubles)); });
}

}  // namespace muster
