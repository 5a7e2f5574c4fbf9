// SPDX-License-Identifier: Apache-2.0
#include "nccl/train/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace muster::train::detail {

namespace {

// One call takes at most about 2 GiB, so larger ones would be cut anyway.
constexpr size_t kLargestCall = 1u << 30;

comm::Result<void> sync_folder(const std::string& path) {
  const File folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return system_error("open", path, errno);
  // Some file systems cannot sync a folder, and then have no need to.
  if (fsync(folder.get()) != 0 && errno != EINVAL) return system_error("sync", path, errno);
  return {};
}

}  // namespace

comm::Error system_error(const std::string& what, const std::string& path, int code) {
  return {comm::ErrorCode::kSystem,
          "checkpoint: " + what + " " + path + ": " + std::generic_category().message(code)};
}

comm::Error bad_file(const std::string& path, const std::string& why) {
  return {comm::ErrorCode::kSystem, "checkpoint: " + path + ": " + why};
}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

int File::release() {
  return std::exchange(fd_, -1);
}

comm::Result<AtomicFile> AtomicFile::create(const std::string& path) {
  const std::string partial = path + ".partial";
  File file(open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return system_error("create", partial, errno);
  return AtomicFile(std::move(file), path);
}

AtomicFile::~AtomicFile() {
  if (file_.get() >= 0) unlink(partial().c_str());
}

comm::Result<void> AtomicFile::write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(file_.get(), bytes, std::min(size, kLargestCall));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("write", partial(), errno);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return {};
}

comm::Result<void> AtomicFile::commit() {
  if (fsync(file_.get()) != 0) return system_error("sync", partial(), errno);
  if (rename(partial().c_str(), path_.c_str()) != 0) return system_error("rename", path_, errno);
  file_ = File();
  return sync_folder(folder_of(path_));
}

comm::Result<File> open_to_read(const std::string& path) {
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return system_error("open", path, errno);
  return file;
}

comm::Result<uint64_t> size_of_file(const File& file, const std::string& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return system_error("stat", path, errno);
  return static_cast<uint64_t>(status.st_size);
}

comm::Result<void> read_at(const File& file, const std::string& path, uint64_t offset, void* data,
                           size_t size) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got =
        pread(file.get(), bytes, std::min(size, kLargestCall), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", path, errno);
    if (got == 0) return bad_file(path, "ends early, at byte " + std::to_string(offset));
    bytes += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return {};
}

comm::Result<bool> exists(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0) return true;
  if (errno == ENOENT) return false;
  return system_error("look for", path, errno);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace muster::train::detail
