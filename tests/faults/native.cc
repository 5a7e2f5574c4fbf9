// SPDX-License-Identifier: Apache-2.0
// native HOW: a C++ program that fails as it is told. It is built plainly and, under other names,
// with sanitizers.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

// Read at run time, so that no compiler sees through what follows.
volatile int zero = 0;
volatile int many = 100;

void segfault() {
  volatile int* nowhere = reinterpret_cast<volatile int*>(static_cast<intptr_t>(zero + 8));
  *nowhere = 1;
}

int deeper(int n) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(n);
  return n < 0 ? 0 : deeper(n + 1) + frame[0];
}

void divide() {
  std::printf("%d\n", many / zero);
}

void assertion() {
  int world_size = zero;
  assert(world_size > 0 && "world size must be positive");
}

void exception() {
  throw std::runtime_error("shard 12: checksum mismatch");
}

void exception_in_thread() {
  std::thread([] { throw std::out_of_range("vector::at: bucket 9"); }).join();
}

void no_memory() {
  rlimit limit{1 << 28, 1 << 28};
  setrlimit(RLIMIT_AS, &limit);
  std::vector<char> big(size_t{1} << 32);
  big[many] = 1;
}

void no_thread() {
  std::thread left([] { pause(); });
}

void broken_pipe() {
  int ends[2];
  if (pipe(ends) != 0) _exit(9);
  close(ends[0]);
  if (write(ends[1], "x", 1) < 0) _exit(9);
}

void double_free() {
  char* text = static_cast<char*>(std::malloc(32));
  std::free(text);
  std::free(text);
}

void heap_corruption() {
  char* text = static_cast<char*>(std::malloc(24));
  char* next = static_cast<char*>(std::malloc(2000));
  std::memset(text, 'x', static_cast<size_t>(many));
  std::free(next);
  std::free(text);
}

void invalid_free() {
  char* text = static_cast<char*>(std::malloc(64));
  std::free(text + 8 + zero);
}

void stack_smash() {
  char small[8];
  for (int i = 0; i < many; ++i)
    (&small[0])[i + zero] = 'x';
  std::printf("%c\n", small[3]);
}

void shrunk_file() {
  const std::string path = std::string(std::getenv("T")) + "/mapped";
  int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (ftruncate(fd, 8192) != 0) _exit(9);
  char* data = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  if (ftruncate(fd, 0) != 0) _exit(9);
  data[5000] = 1;
}

void disk_full() {
  std::ofstream file;
  file.exceptions(std::ios::badbit | std::ios::failbit);
  const std::string path = std::string(std::getenv("T")) + "/small/shard";
  int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  std::vector<char> data(1 << 20);
  for (int i = 0; i < 2; ++i) {
    if (write(fd, data.data(), data.size()) != static_cast<ssize_t>(data.size())) {
      if (write(fd, data.data(), 4096) < 0)
        throw std::system_error(errno, std::generic_category(), "write " + path);
    }
  }
}

void leak() {
  [[maybe_unused]] static char* volatile kept = nullptr;
  for (int i = 0; i < 10; ++i)
    kept = new char[100];
  kept = nullptr;
}

int overflow() {
  return 2147483647 - zero + many;
}

void heap_overflow() {
  std::vector<int> numbers(10);
  numbers.data()[many / 10] = 1;
  std::printf("%d\n", numbers[0]);
}

void use_after_free() {
  auto owner = std::make_unique<int>(4);
  int* gone = owner.get();
  owner.reset();
  std::printf("%d\n", *gone);
}

int shared = 0;

void race() {
  std::thread other([] { shared = 1; });
  shared = 2;
  other.join();
}

const std::map<std::string, std::function<void()>>& ways() {
  static const std::map<std::string, std::function<void()>> all = {
      {"segfault", segfault},
      {"stack", [] { std::printf("%d\n", deeper(zero)); }},
      {"divide", divide},
      {"illegal", [] { __builtin_trap(); }},
      {"abort", [] { std::abort(); }},
      {"assert", assertion},
      {"throw", exception},
      {"thread_throw", exception_in_thread},
      {"no_memory", no_memory},
      {"no_thread", no_thread},
      {"broken_pipe", broken_pipe},
      {"double_free", double_free},
      {"heap_corruption", heap_corruption},
      {"invalid_free", invalid_free},
      {"stack_smash", stack_smash},
      {"shrunk_file", shrunk_file},
      {"disk_full", disk_full},
      {"leak", leak},
      {"overflow", [] { std::printf("%d\n", overflow()); }},
      {"heap_overflow", heap_overflow},
      {"use_after_free", use_after_free},
      {"race", race},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  auto way = argc > 1 ? ways().find(argv[1]) : ways().end();
  if (way == ways().end()) return 99;
  std::printf("step 1\n");
  std::fflush(stdout);
  way->second();
  return 0;
}
