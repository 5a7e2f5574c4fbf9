// SPDX-License-Identifier: Apache-2.0
#include "nccl/join/identity.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>

namespace muster::comm::detail {

TEST_CASE("an identity survives being written down; nonsense is none") {
  const Identity own = Identity::own();
  CHECK(own.pid == getpid());
  CHECK(own.started > 0);
  CHECK(own.boot.size() == 36);
  CHECK(Identity::decode(own.encode()) == own);
  CHECK(Identity::own() != own);  // two members of one process
  CHECK(own.to_string() == "pid " + std::to_string(getpid()) + " on " + own.host);
  for (const char* nonsense : {"", "1", "1 2 3", "1 2 3\nhost\nboot\n", "a b c\nh\nb\np\nn"})
    CHECK_FALSE(Identity::decode(nonsense).has_value());
}

TEST_CASE("a process lives until it ends, and another with its number is not it") {
  Identity identity = Identity::own();
  CHECK(identity.lives());
  identity.started += 1;
  CHECK_FALSE(identity.lives());

  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  Identity other = Identity::own();
  other.pid = child;
  // What start_of() reads, by way of the child's own record: found by trying.
  bool lived = false;
  for (uint64_t ticks = other.started; ticks < other.started + 100'000 && !lived; ++ticks) {
    other.started = ticks;
    lived = other.lives();
  }
  CHECK(lived);
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  CHECK_FALSE(other.lives());  // nobody has collected it yet
  waitpid(child, nullptr, 0);
  CHECK_FALSE(other.lives());
}

TEST_CASE("process ids compare within one boot and one namespace only") {
  const Identity own = Identity::own();
  Identity other = own;
  CHECK(own.same_host(other));
  other.pid_space = "pid:[1]";
  CHECK_FALSE(own.same_host(other));
  other = own;
  other.boot = "another";
  CHECK_FALSE(own.same_host(other));
}

}  // namespace muster::comm::detail
