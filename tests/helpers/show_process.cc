// SPDX-License-Identifier: Apache-2.0
// show_process: prints what a process inherits, one "name value" a line.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main() {
  DIR* directory = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(directory)) {
    int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == dirfd(directory)) continue;
    std::printf("fd %d\n", fd);
  }
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL) {
      std::printf("disposition %d\n", number);
    }
  }
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  for (int number = 1; number < NSIG; ++number) {
    if (sigismember(&mask, number) == 1) std::printf("blocked %d\n", number);
  }
  int death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &death_signal);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof cpus, &cpus);
  int terminal = open("/dev/tty", O_RDWR | O_NOCTTY);
  std::printf("death_signal %d\nsession_leader %d\ngroup_leader %d\ncpus %d\nfiles %d\ntty %d\n",
              death_signal, getsid(0) == getpid(), getpgrp() == getpid(), CPU_COUNT(&cpus),
              static_cast<int>(files.rlim_cur), terminal >= 0);
  return 0;
}
