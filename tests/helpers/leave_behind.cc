// SPDX-License-Identifier: Apache-2.0
// leave_behind HOW CODE: starts a process that stays, prints "ready" when it is there, and ends
// with CODE, or stays too if CODE is "stay". HOW is a list of letters: d double fork and a session
// of its own, i ignore SIGTERM and SIGHUP, e end when the parent did.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

static void stay(int ready, bool stubborn, int parent) {
  if (stubborn) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
  }
  prctl(PR_SET_NAME, "left-behind");
  if (write(ready, "x", 1) != 1) _exit(1);
  close(ready);
  char byte;
  if (parent >= 0) _exit(static_cast<int>(read(parent, &byte, 1)));
  for (;;)
    pause();
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const bool daemonise = std::strchr(argv[1], 'd') != nullptr;
  const bool stubborn = std::strchr(argv[1], 'i') != nullptr;
  const bool with_parent = std::strchr(argv[1], 'e') != nullptr;
  int ready[2], alive[2];
  if (pipe(ready) != 0 || pipe(alive) != 0) return 1;
  if (fork() == 0) {
    if (daemonise) {
      setsid();
      if (fork() != 0) _exit(0);
    }
    close(alive[1]);
    stay(ready[1], stubborn, with_parent ? alive[0] : -1);
  }
  char byte;
  if (read(ready[0], &byte, 1) != 1 || write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  if (std::strcmp(argv[2], "stay") == 0) {
    for (;;)
      pause();
  }
  return std::atoi(argv[2]);
}
