// SPDX-License-Identifier: Apache-2.0
#include "supervisor/browse/log_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace muster {

namespace {

// A cut changes its record once in a quarter MiB that it moves, so twice in a row is rare already.
constexpr int kTries = 1'000;
// The record is being written by another processor at this moment.
constexpr int kRecordTries = 100;

// Never waits for the other side of a pipe that stands where a log should.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// NFS, SMB (three), FUSE, Lustre, Ceph, GPFS, 9P, BeeGFS, AFS.
constexpr uint32_t kRemote[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                                0x65735546, 0x0bd00bd0, 0x00c36400, 0x47504653,
                                0x01021997, 0x19830326, 0x5346414f};

}  // namespace

Result<std::optional<LogBytes>> LogBytes::open(const std::string& path) {
  LogBytes log(path);
  log.log_.reset(::open(path.c_str(), kOpenFlags));
  if (!log.log_) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<LogBytes>();
    return errno_error(errno, "open " + path);
  }
  struct stat info;
  if (fstat(log.log_.get(), &info) != 0) return errno_error(errno, "look at " + path);
  if (!S_ISREG(info.st_mode)) return Error{EINVAL, path + " is not a file"};
  log.identity_.device = info.st_dev;
  log.identity_.file = info.st_ino;
  if (auto looked = log.look(); !looked) return looked.error();
  return std::optional<LogBytes>(std::move(log));
}

// Empty if there is none, or it makes no sense.
std::string LogBytes::read_record() {
  if (!times_) times_.reset(::open(times_path(path_).c_str(), kOpenFlags));
  if (!times_) return {};
  std::string bytes(static_cast<size_t>(kTimesHead), '\0');
  for (int i = 0; i < kRecordTries; ++i) {
    if (pread(times_.get(), bytes.data(), bytes.size(), 0) != kTimesHead) return {};
    if (decode_cut(bytes)) return bytes;
  }
  return {};
}

Result<void> LogBytes::look() {
  for (int i = 0; i < kTries; ++i) {
    std::string record = read_record();
    struct stat info;
    if (fstat(log_.get(), &info) != 0) return errno_error(errno, "look at " + path_);
    if (read_record() != record) continue;
    record_ = std::move(record);
    cut_ = decode_cut(record_).value_or(LogCut());
    identity_.started_us = cut_.started_us;
    layout_ = LogLayout(cut_, info.st_size);
    return {};
  }
  return Error{EBUSY, path_ + " changes faster than it can be read"};
}

bool LogBytes::on_local_disk() const {
  struct statfs info;
  if (fstatfs(log_.get(), &info) != 0) return false;
  auto type = static_cast<uint32_t>(info.f_type);
  return std::find(std::begin(kRemote), std::end(kRemote), type) == std::end(kRemote);
}

Result<LogBytes::Piece> LogBytes::read(int64_t offset, int64_t count) {
  for (int i = 0; i < kTries; ++i) {
    auto part = layout_.at(offset);
    if (!part) return Piece{std::max(offset, size()), {}};
    part->size = std::min(part->size, count);
    auto bytes = read_part(*part);
    if (!bytes) return bytes.error();
    // Fewer than there were: somebody has shortened the file.
    bool whole = static_cast<int64_t>(bytes->size()) == part->size;
    if (whole && read_record() == record_) return Piece{part->offset, *bytes};
    if (auto looked = look(); !looked) return looked.error();
  }
  return Error{EBUSY, path_ + " changes faster than it can be read"};
}

Result<std::string_view> LogBytes::read_part(const LogLayout::Part& part) {
  if (static_cast<int64_t>(buffer_.size()) < part.size) {
    buffer_.resize(static_cast<size_t>(part.size));
  }
  size_t got = 0;
  while (got < static_cast<size_t>(part.size)) {
    ssize_t n = pread(log_.get(), buffer_.data() + got, static_cast<size_t>(part.size) - got,
                      part.place + static_cast<int64_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(errno, "read " + path_);
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return std::string_view(buffer_).substr(0, got);
}

}  // namespace muster
