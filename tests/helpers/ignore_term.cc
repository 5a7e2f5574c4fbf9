// SPDX-License-Identifier: Apache-2.0
// ignore_term: ignores every signal that asks politely, prints "ready", and stays.
#include <signal.h>
#include <unistd.h>

#include <initializer_list>

int main() {
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    ::signal(signal, SIG_IGN);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  for (;;)
    pause();
}
