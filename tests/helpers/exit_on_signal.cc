// SPDX-License-Identifier: Apache-2.0
// exit_on_signal CODE [ABRT]: prints "ready", prints the number of each signal that it gets, and
// ends with CODE after the first one that is not USR1 or USR2. With ABRT it ignores SIGABRT.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

int main(int argc, char** argv) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    sigaddset(&wanted, signal);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
  if (argc > 2) signal(SIGABRT, SIG_IGN);
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    int signal = 0;
    if (sigwait(&wanted, &signal) != 0) return 1;
    std::printf("signal %d\n", signal);
    std::fflush(stdout);
    if (signal != SIGUSR1 && signal != SIGUSR2) return argc > 1 ? std::atoi(argv[1]) : 0;
  }
}
