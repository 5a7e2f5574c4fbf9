// SPDX-License-Identifier: Apache-2.0
//
// Hangs in three ways: its main thread sleeps in stay(), one thread waits for a lock in
// take_lock(), one computes in spin(). They begin in that order.
#include <pthread.h>
#include <unistd.h>

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

}  // namespace

extern "C" {

__attribute__((noinline)) void* take_lock(void*) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return nullptr;
}

__attribute__((noinline)) void* spin(void*) {
  for (;;)
    asm volatile("");
  return nullptr;
}

__attribute__((noinline)) void stay() {
  for (;;)
    sleep(1'000);
}
}

int main() {
  pthread_mutex_lock(&lock);
  pthread_t threads[2];
  pthread_create(&threads[0], nullptr, take_lock, nullptr);
  pthread_create(&threads[1], nullptr, spin, nullptr);
  stay();
}
