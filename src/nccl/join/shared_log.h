// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "loop/result.h"
#include "loop/unique_fd.h"
#include "nccl/core/operation.h"

namespace muster::comm::detail {

// A file to which several processes append, on one host or on several that share a file system.
// Everything happens under a lock of the whole file (fcntl's for open file descriptions: it works
// between two members in one process, over NFS, and vanishes with its holder). What a writer that
// was killed left half done is not there for the others: only bytes before the header's `end`
// count.
//
// One caller at a time. Codes of errors: ESTALE (somebody began the file anew, or removed it),
// ETIMEDOUT (the lock was held until the deadline), otherwise errno's.
class SharedLog {
 public:
  enum class Access : uint8_t { kRead, kWrite };

  // Opens or makes it.
  static muster::Result<SharedLog> open(const std::string& path);

  // Held from lock() until it goes.
  class Lock {
   public:
    explicit Lock(int fd) : fd_(fd) {}
    Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    Lock& operator=(Lock&&) = delete;
    ~Lock();

   private:
    int fd_;
  };
  // Also reads the header.
  muster::Result<Lock> lock(Access access, Deadline deadline);

  // The rest only under the lock.

  // What was appended since the last call. `anew`: what came before it counts no more, since it is
  // all in these bytes (somebody shortened the log) or gone.
  struct News {
    bool anew = false;
    std::string bytes{};
  };
  muster::Result<News> read();

  // The next read() gives everything again.
  void forget() { seen_generation_ = 0; }

  muster::Result<void> append(std::string_view bytes);

  // `bytes` stand for everything so far.
  muster::Result<void> replace(std::string_view bytes);

  // Nothing is in it any more, and everybody else who has it open is told so by ESTALE.
  muster::Result<void> begin_anew();

  // Whether the path still leads to this file; removes it there.
  bool in_place() const;
  void remove();

  // How much replace() would save at most.
  uint64_t size() const { return header_.end - header_.begin; }
  const std::string& path() const { return path_; }
  // A file system that only this host can write to, as far as its kind tells.
  bool local() const;
  int fd() const { return fd_.get(); }

  // From now on lock() fails if the file is begun anew.
  void belong() { generation_ = header_.generation; }
  uint64_t generation() const { return header_.generation; }
  void belong_to(uint64_t generation) { generation_ = generation; }

 private:
  struct Header {
    uint64_t magic;
    uint64_t generation;  // of the contents; begin_anew() counts it up
    uint64_t edition;     // replace() counts it up
    uint64_t begin;       // of the log
    uint64_t end;
  };
  static constexpr uint64_t kLogBegin = 64;

  SharedLog(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  muster::Result<void> read_header();
  muster::Result<void> write_header(const Header& header);
  muster::Result<void> write_at(uint64_t offset, std::string_view bytes);

  std::string path_;
  UniqueFd fd_;
  Header header_{};
  uint64_t generation_ = 0;  // 0: any
  uint64_t seen_generation_ = 0;
  uint64_t seen_edition_ = 0;
  uint64_t seen_ = kLogBegin;  // where the next read begins
};

}  // namespace muster::comm::detail
