// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/own_page.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "loop/check.h"

namespace muster::comm::detail {
namespace {

using worker_page::Page;

constexpr int kPatience = 200;  // turns at the processor given to whoever holds a version

// Constant from the first opening on, except in a forked child.
std::atomic<Page*> opened{nullptr};
std::atomic<bool> shared{false};

Page* map_private(void* at) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0);
  void* memory = mmap(at, sizeof(Page), PROT_READ | PROT_WRITE, flags, -1, 0);
  return memory != MAP_FAILED ? static_cast<Page*>(memory) : nullptr;
}

// The child of a fork must not write what its parent reports. Putting private memory at the page's
// address leaves every pointer into it good, and costs the writers no check.
void after_fork_in_child() {
  Page* page = opened.load(std::memory_order_relaxed);
  if (page == nullptr || !shared.load(std::memory_order_relaxed)) return;
  shared.store(false, std::memory_order_relaxed);
  MUST(map_private(page) != nullptr);  // else it would write its parent's
}

bool is_open(const worker_page::CommunicatorBlock& block) {
  return block.used.load(std::memory_order_relaxed) != 0 &&
         block.closed.load(std::memory_order_relaxed) == 0;
}

// Whether this very process has mapped the file before it did so just now: the library is in it
// twice, in two extension modules, say.
bool mapped_before(const struct stat& file) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return true;
  int mappings = 0;
  char line[512];
  while (std::fgets(line, sizeof(line), maps) != nullptr) {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned long inode = 0;
    const int fields = std::sscanf(line, "%*s %*s %*s %x:%x %lu", &major, &minor, &inode);
    if (fields == 3 && inode == file.st_ino && makedev(major, minor) == file.st_dev) mappings++;
  }
  std::fclose(maps);
  return mappings > 1;
}

// A program that went before (a check that a start script runs, or this process before it called
// exec) gives the page up by ending, unless it left a communicator open: then what it was doing is
// what somebody will want to know.
bool may_succeed(const Page& page, pid_t owner, const struct stat& file) {
  const bool same = owner == getpid();
  if (same ? mapped_before(file) : !(kill(owner, 0) != 0 && errno == ESRCH)) return false;
  if (same) return true;
  for (const auto& block : page.communicators) {
    if (is_open(block)) return false;
  }
  return true;
}

bool take(Page& page, const struct stat& file) {
  int32_t owner = 0;
  if (page.owner.compare_exchange_strong(owner, getpid())) return true;
  return may_succeed(page, owner, file) && page.owner.compare_exchange_strong(owner, getpid());
}

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  int number = -1;
  if (text == nullptr) return -1;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  return error == std::errc() && rest == end && number >= 0 ? number : -1;
}

// The owner before us died in the middle. (Only now is it sure that nobody goes on.)
void make_even(worker_page::Shared<uint64_t>& version) {
  if ((version.load() & 1) != 0) version.fetch_add(1);
}

void clear(worker_page::CommunicatorBlock& block) {
  put(block.used, 0U);
  if (block.version.load() == 0) return;  // never opened; so its ring stays without memory
  make_even(block.version);
  for (worker_page::RingEntry& entry : block.ring)
    make_even(entry.version);
}

void prepare(Page& page) {
  // A new one, which nobody has prepared yet, is all zeros, and not touching its blocks leaves them
  // without memory.
  page.magic.store(0);
  if (page.layout.load() != 0) {
    for (auto& block : page.communicators)
      clear(block);
  }
  worker_page::ProgressBlock& progress = page.progress;
  make_even(progress.version);
  put(progress.step, int64_t{-1});
  put(progress.total, int64_t{-1});
  put(progress.loss, std::numeric_limits<double>::quiet_NaN());
  put(progress.reported_ns, int64_t{0});
  put(progress.heartbeat_ns, int64_t{0});
  put(progress.values, 0U);
  put(page.rank, number_of("RANK"));
  put(page.world_size, number_of("WORLD_SIZE"));
  put(page.layout, worker_page::kVersion);
  page.magic.store(worker_page::kMagic);
}

Page* open_page() {
  Page* page = take_page(std::getenv(worker_page::kVariable));
  shared.store(page != nullptr, std::memory_order_relaxed);
  if (page == nullptr) page = map_private(nullptr);
  MUST(page != nullptr);
  prepare(*page);
  opened.store(page, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  return page;
}

}  // namespace

Page* take_page(const char* path) {
  if (path == nullptr || *path == 0) return nullptr;
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return nullptr;
  struct stat file {};
  void* memory = MAP_FAILED;
  // A smaller one is an older launcher's, or none.
  if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
      file.st_size >= static_cast<off_t>(sizeof(Page))) {
    memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return nullptr;
  auto* page = static_cast<Page*>(memory);
  if (take(*page, file)) return page;
  munmap(memory, sizeof(Page));
  return nullptr;
}

Page& own_page() {
  static Page* page = open_page();
  return *page;
}

bool own_page_is_shared() {
  own_page();
  return shared.load(std::memory_order_relaxed);
}

void set_world(int rank, int size) {
  put(own_page().rank, rank);
  put(own_page().world_size, size);
}

int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void write_text(char* to, size_t capacity, std::string_view text) {
  size_t length = std::min(text.size(), capacity - 1);
  if (length < text.size()) {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0U) == 0x80U)
      length--;
  }
  for (size_t i = 0; i < capacity; i++) {
    std::atomic_ref(to[i]).store(i < length ? text[i] : '\0', std::memory_order_release);
  }
}

bool begin_write(worker_page::Shared<uint64_t>& version) {
  for (int turn = 0; turn < kPatience; turn++) {
    uint64_t seen = version.load(std::memory_order_relaxed);
    if ((seen & 1) == 0 &&
        version.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire)) {
      return true;
    }
    if ((seen & 1) != 0) sched_yield();
  }
  return false;
}

void end_write(worker_page::Shared<uint64_t>& version) {
  version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace muster::comm::detail
