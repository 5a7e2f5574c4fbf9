// SPDX-License-Identifier: Apache-2.0
// The store by itself: listens on 127.0.0.1 (or the address given), prints its port, and serves
// until its standard input ends. SIGUSR1 begins a new attempt: it resets the store. Trouble goes to
// standard error.

#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "loop/fd_limit.h"
#include "loop/fd_watch.h"
#include "loop/signal.h"
#include "store/server.h"

int main(int argc, char** argv) {
  using namespace muster;
  raise_fd_limit();
  Loop loop;
  auto server = StoreServer::listen(
      loop, argc > 1 ? argv[1] : "127.0.0.1", 0,
      {[](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }});
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  auto on_reset = SignalWatch::start(loop, SIGUSR1, [&] { (*server)->reset(); });
  auto input = FdWatch::start(loop, STDIN_FILENO, FdWatch::kReadable, [&](int) {
    char buffer[256];
    if (read(STDIN_FILENO, buffer, sizeof buffer) <= 0) loop.stop();
  });
  if (!input) {
    std::fprintf(stderr, "%s\n", input.error().message.c_str());
    return 1;
  }
  std::printf("%d\n", (*server)->port());
  std::fflush(stdout);
  loop.run();
  return 0;
}
