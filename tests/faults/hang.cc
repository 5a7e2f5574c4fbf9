// SPDX-License-Identifier: Apache-2.0
// hang HOW: a C++ program that never ends.
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

namespace {

std::mutex first;
std::mutex second;

void take(std::mutex& one, std::mutex& other) {
  std::lock_guard mine(one);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::lock_guard its(other);
}

}  // namespace

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (std::strcmp(how, "lock") == 0) {
    first.lock();
    first.lock();
  } else if (std::strcmp(how, "locks") == 0) {
    std::thread other([] { take(second, first); });
    take(first, second);
    other.join();
  } else if (std::strcmp(how, "spin") == 0) {
    for (volatile bool on = true; on;) {
    }
  }
  return 99;
}
