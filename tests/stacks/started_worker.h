// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "loop/loop_test.h"
#include "supervisor/workers/spawn.h"

namespace muster::testing {

// A program that runs as a worker would, killed when the test ends.
struct StartedWorker {
  int pid = 0;

  explicit StartedWorker(std::vector<std::string> argv, StdioSource out = null()) {
    SpawnSpec spec;
    spec.executable = argv[0];
    spec.argv = std::move(argv);
    spec.environment = {"PATH=/usr/bin:/bin"};
    spec.stdio = {null(), std::move(out), null()};
    auto spawned = spawn(spec);
    REQUIRE(spawned.has_value());
    pid = spawned->pid;
  }
  ~StartedWorker() {
    ::kill(-pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  StartedWorker(const StartedWorker&) = delete;
  StartedWorker& operator=(const StartedWorker&) = delete;

  // Nothing tells when another process has gone to sleep, so it is looked at again and again.
  bool until(const std::function<bool()>& seen) const {
    Loop loop;
    const auto deadline = Clock::now() + Milliseconds(20'000);
    while (!seen()) {
      if (Clock::now() > deadline) return false;
      loop.run_until([] { return false; }, Milliseconds(10));
    }
    return true;
  }

  static StdioSource null() { return {StdioSource::Kind::kNull, -1, ""}; }
};

}  // namespace muster::testing
