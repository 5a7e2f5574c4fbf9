// SPDX-License-Identifier: Apache-2.0
// crash SIGNAL: dies by it, without a core file.
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>

int main(int argc, char** argv) {
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  raise(argc > 1 ? std::atoi(argv[1]) : SIGABRT);
  return 0;
}
