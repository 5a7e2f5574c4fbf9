// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/terminal.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace muster {

namespace {

// The exit status of `body` in a child.
int in_child(const std::function<int()>& body) {
  pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Runs `body` in a job of a session that has `terminal`: the foreground job or another one.
int in_job(int terminal, bool foreground, const std::function<int()>& body) {
  return in_child([&] {
    setsid();
    ioctl(terminal, TIOCSCTTY, 0);
    return in_child([&] {
      if (!foreground) setpgid(0, 0);
      return body();
    });
  });
}

}  // namespace

TEST_CASE("a background job is told from the foreground one") {
  auto pty = open_pty(-1);
  REQUIRE(pty.has_value());
  int terminal = pty->slave.get();
  auto ask = [terminal] { return in_background(terminal) ? 1 : 0; };
  CHECK(in_job(terminal, true, ask) == 0);
  CHECK(in_job(terminal, false, ask) == 1);
}

TEST_CASE("a supervisor in a session of its own asks about its parent") {
  auto pty = open_pty(-1);
  REQUIRE(pty.has_value());
  int terminal = pty->slave.get();
  auto ask = [terminal] {
    return in_child([terminal] {
      setsid();
      return in_background(terminal) ? 1 : 0;
    });
  };
  CHECK(in_job(terminal, true, ask) == 0);
  CHECK(in_job(terminal, false, ask) == 1);
}

TEST_CASE("what is no terminal is never in the background") {
  CHECK_FALSE(in_background(-1));
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  CHECK_FALSE(in_background(null));
  close(null);
}

TEST_CASE("a pseudo-terminal passes bytes unchanged and does not echo") {
  auto pty = open_pty(-1);
  REQUIRE(pty.has_value());
  REQUIRE(write(pty->master.get(), "typed\n", 6) == 6);
  REQUIRE(write(pty->slave.get(), "a\nb\tc", 5) == 5);
  char bytes[32];
  CHECK(read(pty->master.get(), bytes, sizeof bytes) == 5);
  CHECK(std::string(bytes, 5) == "a\nb\tc");
}

}  // namespace muster
