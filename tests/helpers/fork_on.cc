// SPDX-License-Identifier: Apache-2.0
// fork_on [session]: a process that forks and ends, again and again, so that its pid never stays,
// each time in a session of its own if asked to; prints "ready" first. It stops after a minute even
// if nobody ends it.
#include <signal.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char**) {
  signal(SIGTERM, SIG_IGN);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  const time_t until = time(nullptr) + 60;
  while (time(nullptr) < until) {
    if (fork() != 0) _exit(0);
    if (argc > 1) setsid();
    usleep(100);
  }
  return 0;
}
