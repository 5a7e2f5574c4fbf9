// SPDX-License-Identifier: Apache-2.0
// fork_on: a process that forks and ends, again and again, so that its pid never stays; prints
// "ready" first. It stops after some seconds even if nobody ends it.
#include <signal.h>
#include <time.h>
#include <unistd.h>

int main() {
  signal(SIGTERM, SIG_IGN);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  const time_t until = time(nullptr) + 20;
  while (time(nullptr) < until) {
    if (fork() != 0) _exit(0);
    usleep(100);
  }
  return 0;
}
