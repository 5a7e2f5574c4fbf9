// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace muster::train::detail {

comm::Error system_error(const std::string& what, const std::string& path, int code);
// A file that is there and cannot be used: torn, altered, or not of our kind.
comm::Error bad_file(const std::string& path, const std::string& why);

// A descriptor that is closed with it.
class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  File(File&& other) noexcept : fd_(other.release()) {}
  File& operator=(File&& other) noexcept;
  ~File();
  int get() const { return fd_; }
  int release();

 private:
  int fd_;
};

// Replaces a file in one step: everything goes to "<path>.partial", which commit() makes the file.
// Dropped without it, the partial file is removed.
class AtomicFile {
 public:
  static comm::Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&&) = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  comm::Result<void> write(const void* data, size_t size);
  comm::Result<void> commit();

 private:
  AtomicFile(File file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  std::string partial() const { return path_ + ".partial"; }

  File file_;  // invalid: committed or moved from
  std::string path_;
};

comm::Result<File> open_to_read(const std::string& path);
comm::Result<uint64_t> size_of_file(const File& file, const std::string& path);
// All of it; fewer bytes are an error ("ends early").
comm::Result<void> read_at(const File& file, const std::string& path, uint64_t offset, void* data,
                           size_t size);
// An error where that cannot be told.
comm::Result<bool> exists(const std::string& path);
std::string folder_of(const std::string& path);

}  // namespace muster::train::detail
