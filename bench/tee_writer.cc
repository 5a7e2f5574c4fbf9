// SPDX-License-Identifier: Apache-2.0
// The worker of tee.py.
//
//   tee_writer flood BYTES       writes BYTES in 100-byte lines, 64 KiB a write, as fast as it can
//   tee_writer pace LINES RATE   writes LINES lines, RATE a second, each with CLOCK_MONOTONIC
//                                nanoseconds as its first word

#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr size_t kLine = 100;
constexpr int64_t kSecond = 1'000'000'000;

int64_t now() {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

void write_all(const char* bytes, size_t size) {
  while (size > 0) {
    ssize_t n = write(STDOUT_FILENO, bytes, size);
    if (n <= 0) std::exit(1);
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

int flood(size_t bytes) {
  std::string block;
  size_t lines = 0;
  char number[kLine + 1];
  for (size_t left = bytes / kLine; left > 0;) {
    block.clear();
    for (; left > 0 && block.size() + kLine <= 64 * 1024; --left) {
      std::snprintf(number, sizeof number, "%012zu ", lines++);
      block += number;
      block.append(kLine - 14, 'x');
      block += '\n';
    }
    write_all(block.data(), block.size());
  }
  return 0;
}

int pace(int lines, int rate) {
  int64_t next = now();
  for (int i = 0; i < lines; ++i) {
    next += kSecond / rate;
    struct timespec at = {next / kSecond, next % kSecond};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
    char line[kLine + 1];
    int size = std::snprintf(line, sizeof line, "%020" PRId64 " %0*d\n", now(),
                             static_cast<int>(kLine) - 22, i);
    write_all(line, static_cast<size_t>(size));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "flood") == 0)
    return flood(std::strtoull(argv[2], nullptr, 10));
  if (argc == 4 && std::strcmp(argv[1], "pace") == 0) {
    return pace(std::atoi(argv[2]), std::atoi(argv[3]));
  }
  std::fprintf(stderr, "usage: tee_writer flood BYTES | pace LINES RATE\n");
  return 2;
}
