// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/shared_log.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace muster::comm::detail {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMagic = 0x31676f6c'7074736dULL;  // "mstplog1"

// Between two attempts to get the lock, which is held for microseconds. Waiting in the kernel would
// know no deadline.
constexpr std::chrono::microseconds kFirstPause{50};
constexpr std::chrono::microseconds kLongestPause{5'000};

muster::Error failed(const std::string& path, std::string_view what, int code) {
  return errno_error(code, "file://" + path + ": " + std::string(what));
}

bool set_lock(int fd, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

muster::Result<SharedLog> SharedLog::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return failed(path, "open", errno);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return failed(path, "stat", errno);
  if (!S_ISREG(status.st_mode))
    return muster::Error{EINVAL, "file://" + path + ": is not a regular file"};
  return SharedLog(path, std::move(fd));
}

SharedLog::Lock::~Lock() {
  if (fd_ >= 0) set_lock(fd_, F_UNLCK);
}

muster::Result<SharedLog::Lock> SharedLog::lock(Access access, Deadline deadline) {
  const short type = access == Access::kRead ? F_RDLCK : F_WRLCK;
  for (auto pause = kFirstPause; !set_lock(fd_.get(), type);
       pause = std::min(pause * 2, kLongestPause)) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) return failed(path_, "lock", errno);
    if (Clock::now() >= deadline)
      return muster::Error{ETIMEDOUT, "file://" + path_ + ": another process holds its lock"};
    std::this_thread::sleep_for(pause);
  }
  Lock held(fd_.get());
  if (muster::Result<void> known = read_header(); !known) return known.error();
  return held;
}

muster::Result<void> SharedLog::read_header() {
  Header header{};
  const ssize_t got = pread(fd_.get(), &header, sizeof header, 0);
  if (got < 0) return failed(path_, "read", errno);
  if (got == 0) {
    header_ = {kMagic, 0, 0, kLogBegin, kLogBegin};
  } else if (got != sizeof header || header.magic != kMagic || header.begin < kLogBegin ||
             header.end < header.begin) {
    return muster::Error{
        EINVAL, "file://" + path_ + ": is not one that ranks meet at; it is left as it is"};
  } else {
    struct stat status {};
    if (fstat(fd_.get(), &status) != 0) return failed(path_, "stat", errno);
    if (header.end > static_cast<uint64_t>(status.st_size))
      return muster::Error{EPROTO, "file://" + path_ + ": is shorter than it says"};
    header_ = header;
  }
  if (generation_ != 0 && header_.generation != generation_)
    return muster::Error{ESTALE, "file://" + path_ + ": another job has begun it anew"};
  return {};
}

muster::Result<SharedLog::News> SharedLog::read() {
  News news;
  if (header_.generation != seen_generation_ || header_.edition != seen_edition_) {
    news.anew = true;
    seen_generation_ = header_.generation;
    seen_edition_ = header_.edition;
    seen_ = header_.begin;
  }
  news.bytes.resize(header_.end - seen_);
  size_t done = 0;
  while (done < news.bytes.size()) {
    const ssize_t got = pread(fd_.get(), news.bytes.data() + done, news.bytes.size() - done,
                              static_cast<off_t>(seen_ + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path_, "read", errno);
    if (got == 0) return muster::Error{EPROTO, "file://" + path_ + ": is shorter than it says"};
    done += static_cast<size_t>(got);
  }
  seen_ = header_.end;
  return news;
}

muster::Result<void> SharedLog::write_at(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failed(path_, "write", errno);
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return {};
}

muster::Result<void> SharedLog::write_header(const Header& header) {
  if (muster::Result<void> put =
          write_at(0, {reinterpret_cast<const char*>(&header), sizeof header});
      !put)
    return put;
  header_ = header;
  return {};
}

// The bytes first and then the header: a writer that dies between has written nothing.
muster::Result<void> SharedLog::append(std::string_view bytes) {
  Header header = header_;
  if (muster::Result<void> put = write_at(header.end, bytes); !put) return put;
  header.end += bytes.size();
  if (muster::Result<void> put = write_header(header); !put) return put;
  seen_ = header.end;
  return {};
}

muster::Result<void> SharedLog::replace(std::string_view bytes) {
  Header header = header_;
  const uint64_t old_end = header.end;
  if (muster::Result<void> put = write_at(old_end, bytes); !put) return put;
  header.begin = old_end;
  header.end = old_end + bytes.size();
  ++header.edition;
  if (muster::Result<void> put = write_header(header); !put) return put;
  seen_edition_ = header.edition;
  seen_ = header.end;
  // Offsets only grow, the space comes back where the file system can do that.
  fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kLogBegin,
            static_cast<off_t>(old_end - kLogBegin));
  return {};
}

muster::Result<void> SharedLog::begin_anew() {
  const Header header{kMagic, header_.generation + 1, 0, kLogBegin, kLogBegin};
  if (muster::Result<void> put = write_header(header); !put) return put;
  if (ftruncate(fd_.get(), kLogBegin) != 0) return failed(path_, "truncate", errno);
  return {};
}

bool SharedLog::in_place() const {
  struct stat here {
  }, there{};
  return fstat(fd_.get(), &here) == 0 && stat(path_.c_str(), &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

void SharedLog::remove() {
  if (in_place()) unlink(path_.c_str());
}

bool SharedLog::local() const {
  struct statfs status {};
  if (fstatfs(fd_.get(), &status) != 0) return false;
  constexpr int64_t kXfs = 0x58465342;
  const auto type = static_cast<int64_t>(status.f_type);
  return type == EXT4_SUPER_MAGIC || type == kXfs || type == BTRFS_SUPER_MAGIC ||
         type == TMPFS_MAGIC || type == OVERLAYFS_SUPER_MAGIC || type == F2FS_SUPER_MAGIC;
}

}  // namespace muster::comm::detail
