// SPDX-License-Identifier: Apache-2.0
//
// The worker of bench/death.py. All ranks of all attempts share one file of time stamps
// (CLOCK_MONOTONIC, nanoseconds): a row an attempt, in which rank 0 notes when it dies and each
// rank when it began and when SIGTERM reached it. Rank 0 dies once all others of the attempt wait.

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace {

constexpr int kRanks = 8;
constexpr int kRowSize = 1 + 2 * kRanks;
constexpr int kRows = 1024;

int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int number(const char* variable) {
  return ::atoi(::getenv(variable));
}

}  // namespace

int main(int, char** argv) {
  int64_t began = now();
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &term, nullptr);

  int fd = ::open(argv[1], O_RDWR);
  void* map = ::mmap(nullptr, sizeof(int64_t) * kRowSize * kRows, PROT_READ | PROT_WRITE,
                     MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return 99;
  int rank = number("LOCAL_RANK");
  int attempt = number("TORCHELASTIC_RESTART_COUNT");
  auto* row = static_cast<std::atomic<int64_t>*>(map) + attempt * kRowSize;
  row[1 + rank] = began;
  if (attempt == number("TORCHELASTIC_MAX_RESTARTS")) return 0;

  if (rank != 0) {
    int signal = 0;
    ::sigwait(&term, &signal);
    row[1 + kRanks + rank] = now();
    return 0;
  }
  for (int other = 1; other < kRanks; ++other) {
    while (row[1 + other] == 0)
      ::usleep(1000);
  }
  ::usleep(100'000);  // torchrun looks at its workers every 100 ms: not always at the same moment
  ::usleep(static_cast<useconds_t>(began % 100'000));
  row[0] = now();
  ::_exit(1);
}
