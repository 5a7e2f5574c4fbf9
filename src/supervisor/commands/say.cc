// SPDX-License-Identifier: Apache-2.0
#include "supervisor/commands/say.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "supervisor/commands/exit_codes.h"

namespace muster {

void say(std::string_view text) {
  const std::string line = "muster: " + std::string(text) + "\n";
  std::fputs(line.c_str(), stderr);
}

int fail(std::string_view command, const Error& error) {
  say(std::string(command) + ": " + error.message);
  return error.code;
}

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {  // somebody who shares it made it non-blocking
      pollfd ready{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (errno == EPIPE) ::_exit(kExitFine);
    say(std::string("write to stdout: ") + std::strerror(errno));
    ::_exit(kExitBad);
  }
}

}  // namespace muster
