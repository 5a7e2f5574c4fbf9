// SPDX-License-Identifier: Apache-2.0
//
// The worker of bench/death.py and bench/rendezvous.py: bench_worker STAMPS [VICTIM]. All ranks of
// all attempts share one file of time stamps (CLOCK_MONOTONIC, nanoseconds; peers.Stamps reads it).
// First for each rank how often it was started, then a row an attempt: when the victim (rank 0 if
// none is named) died, how many ranks wait, when each began, when SIGTERM reached each. The victim
// dies once all others wait; in the last attempt all exit once all have begun.

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace {

using Stamp = std::atomic<int64_t>;

int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int number(const char* variable) {
  return ::atoi(::getenv(variable));
}

Stamp* map_stamps(const char* path) {
  int fd = ::open(path, O_RDWR);
  struct stat file {};
  if (::fstat(fd, &file) != 0) ::_exit(98);
  void* map =
      ::mmap(nullptr, static_cast<size_t>(file.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) ::_exit(99);
  return static_cast<Stamp*>(map);
}

// A thousand processes that look again and again would be measured too, so they sleep on the low
// half of the count.
void arrive(Stamp& waiting, int64_t all) {
  if (++waiting == all) ::syscall(SYS_futex, &waiting, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void wait_for(Stamp& waiting, int64_t all) {
  for (int64_t have = waiting; have < all; have = waiting)
    ::syscall(SYS_futex, &waiting, FUTEX_WAIT, static_cast<uint32_t>(have), nullptr, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t began = now();
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &term, nullptr);

  const int rank = number("RANK");
  const int ranks = number("WORLD_SIZE");
  const int victim = argc > 2 ? ::atoi(argv[2]) : 0;
  Stamp* stamps = map_stamps(argv[1]);
  // torchrun's own count of restarts is not the same on all nodes.
  const int64_t attempt = stamps[rank]++;
  const int last = number("TORCHELASTIC_MAX_RESTARTS");
  if (attempt > last) return 97;  // started again although no worker had failed
  Stamp* row = stamps + ranks + attempt * (2 + 2 * ranks);
  row[2 + rank] = began;
  arrive(row[1], ranks);
  if (attempt == last) {
    wait_for(row[1], ranks);
    return 0;
  }
  if (rank != victim) {
    int signal = 0;
    ::sigwait(&term, &signal);
    row[2 + ranks + rank] = now();
    return 0;
  }
  wait_for(row[1], ranks);
  ::usleep(100'000);  // torchrun looks at its workers every 100 ms: not always at the same moment
  ::usleep(static_cast<useconds_t>(began % 100'000));
  row[0] = now();
  ::_exit(1);
}
