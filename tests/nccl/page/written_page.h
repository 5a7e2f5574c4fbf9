// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "nccl/core/operation.h"
#include "nccl/report/worker_page.h"

namespace muster::testing {

inline int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A worker's page as a test writes it, field by field: also such as no sound program would.
class WrittenPage {
 public:
  // In a file of its own.
  WrittenPage() : WrittenPage(::memfd_create("page", MFD_CLOEXEC)) {
    if (::ftruncate(fd_, sizeof(worker_page::Page)) != 0) std::abort();
    map();
  }
  // The one that the environment names.
  static WrittenPage of_worker() {
    const char* path = std::getenv(worker_page::kVariable);
    WrittenPage page(path ? ::open(path, O_RDWR | O_CLOEXEC) : -1);
    page.map();
    return page;
  }
  WrittenPage(WrittenPage&& other) noexcept : fd_(other.fd_), page_(other.page_) {
    other.fd_ = -1;
    other.page_ = nullptr;
  }
  WrittenPage& operator=(WrittenPage&&) = delete;
  ~WrittenPage() {
    if (page_ != nullptr) ::munmap(page_, sizeof *page_);
    if (fd_ >= 0) ::close(fd_);
  }

  bool open() const { return page_ != nullptr; }
  int fd() const { return fd_; }
  worker_page::Page& operator*() { return *page_; }
  worker_page::Page* operator->() { return page_; }

  void own(int rank, int world_size) {
    page_->layout = worker_page::kVersion;
    page_->owner = ::getpid();
    page_->rank = rank;
    page_->world_size = world_size;
    page_->progress.step = -1;
    page_->progress.total = -1;
    page_->progress.loss = std::numeric_limits<double>::quiet_NaN();
    page_->magic = worker_page::kMagic;
  }

  worker_page::CommunicatorBlock& communicator(int index, uint64_t id, int rank,
                                               const std::vector<int>& members,
                                               const std::string& name = "world") {
    worker_page::CommunicatorBlock& block = page_->communicators[static_cast<size_t>(index)];
    block.id = id;
    block.rank = rank;
    block.size = static_cast<int32_t>(members.size());
    std::strncpy(block.name, name.c_str(), sizeof block.name - 1);
    for (size_t i = 0; i < members.size() && i < worker_page::kMaxMembers; ++i)
      block.member[i] = members[i];
    block.members =
        members.size() <= worker_page::kMaxMembers ? static_cast<uint32_t>(members.size()) : 0U;
    block.used = 1;
    return block;
  }

  struct Call {
    comm::detail::OpKind kind = comm::detail::OpKind::kAllReduce;
    uint64_t count = 1;
    comm::DataType type = comm::DataType::kFloat32;
    int root_or_peer = 0;
    int tag = 0;
    comm::ReduceOp reduce = comm::ReduceOp::kSum;
  };
  // Enters the next operation.
  static worker_page::RingEntry& enter(worker_page::CommunicatorBlock& block, const Call& call) {
    const bool message = call.kind <= comm::detail::OpKind::kRecv;
    worker_page::RingEntry& entry = block.ring[block.entries % worker_page::kRingSize];
    ++entry.version;
    entry.sequence = (message ? block.messages : block.collectives) + 1;
    entry.count = call.count;
    entry.start_ns = monotonic_ns();
    entry.end_ns = 0;
    entry.root_or_peer = call.root_or_peer;
    entry.tag = call.tag;
    entry.kind = static_cast<uint8_t>(call.kind);
    entry.type = static_cast<uint8_t>(call.type);
    entry.reduce = static_cast<uint8_t>(call.reduce);
    entry.state = static_cast<uint8_t>(worker_page::OpState::kRunning);
    ++entry.version;
    ++block.entries;
    ++(message ? block.messages : block.collectives);
    return entry;
  }
  static void leave(worker_page::RingEntry& entry,
                    worker_page::OpState state = worker_page::OpState::kDone) {
    entry.end_ns = monotonic_ns();
    entry.state = static_cast<uint8_t>(state);
  }

 private:
  explicit WrittenPage(int fd) : fd_(fd) {}
  void map() {
    if (fd_ < 0) return;
    void* at =
        ::mmap(nullptr, sizeof(worker_page::Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at != MAP_FAILED) page_ = static_cast<worker_page::Page*>(at);
  }
  int fd_;
  worker_page::Page* page_ = nullptr;
};

}  // namespace muster::testing
