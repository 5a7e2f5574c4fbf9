// SPDX-License-Identifier: Apache-2.0
#include "supervisor/diagnosis/wait_status.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster {

namespace {

template <typename F>
int status_of_child(F&& in_child) {
  int pid = fork();
  if (pid == 0) {
    rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    in_child();
    _exit(99);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return status;
}

}  // namespace

TEST_CASE("an exit code is told apart from a signal") {
  WaitStatus exited = decode_wait_status(status_of_child([] { _exit(3); }));
  CHECK(exited.signal == 0);
  CHECK(exited.exit_code == 3);
  CHECK(describe_end(exited) == "exited with code 3");
  WaitStatus killed = decode_wait_status(status_of_child([] { raise(SIGKILL); }));
  CHECK(killed.signal == SIGKILL);
  CHECK(killed.exit_code == 137);
  CHECK(describe_end(killed) == "killed by SIGKILL (signal 9)");
}

TEST_CASE("a signal without an ordinary name is named") {
  WaitStatus status = decode_wait_status(status_of_child([] { raise(40); }));
  CHECK(status.signal == 40);
  CHECK(status.exit_code == 168);
  CHECK(describe_end(status) == "killed by SIGRTMIN+6 (signal 40)");
  CHECK(signal_name(SIGRTMIN) == "SIGRTMIN");
  CHECK(signal_name(33) == "signal 33");
  CHECK(describe_end(WaitStatus{33, 161, true}) == "killed by signal 33 (core dumped)");
}

TEST_CASE("a core dump is said") {
  WaitStatus status = decode_wait_status(SIGSEGV | 0x80);
  CHECK(status.core_dumped);
  CHECK(describe_end(status) == "killed by SIGSEGV (signal 11, core dumped)");
}

TEST_CASE("success is exit code 0 and nothing else") {
  CHECK(decode_wait_status(0).success());
  CHECK_FALSE(decode_wait_status(1 << 8).success());
  CHECK_FALSE(decode_wait_status(SIGTERM).success());
}

}  // namespace muster
