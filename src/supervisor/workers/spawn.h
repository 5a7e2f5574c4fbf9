// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "loop/result.h"
#include "loop/unique_fd.h"

namespace muster {

// Where a child's fd 0, 1 or 2 comes from.
struct StdioSource {
  enum class Kind {
    kInherit,  // muster's own
    kNull,     // /dev/null
    kFd,       // `fd`, which stays owned by the caller
    kFile,     // `path`, opened for appending by the child itself: such a stream costs us nothing
  };
  Kind kind = Kind::kInherit;
  int fd = -1;
  std::string path;
};

// All that execve and what comes before it need. Plain data, prepared before the fork so that the
// child only makes system calls.
struct SpawnSpec {
  std::string executable;  // path for execve
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value"
  std::array<StdioSource, 3> stdio;
  bool controlling_terminal = false;  // stdio[0] is a pty slave: make it the controlling terminal
  std::vector<int> cpus;              // affinity, empty = unchanged
  int cgroup = -1;                    // fd of the directory of a cgroup v2 to start in, -1 = none
  int64_t file_limit = 0;             // soft RLIMIT_NOFILE, 0 = muster's own
};

// The code of an error that says nothing about the program.
inline constexpr int kNotExecuted = EIO;

struct Spawned {
  int pid = 0;
  UniqueFd pidfd;
};

// Starts a process that leads its own session and process group, dies with us (PR_SET_PDEATHSIG,
// checked against the race with our own death), has default signal dispositions and an empty mask,
// and no descriptor but its stdio. When execve fails, the error carries its errno (ENOENT, EACCES,
// ENOEXEC ...); when a step before it does, kNotExecuted, because a log file that is missing must
// not be taken for a program that is. The message names step and reason, and no process is left.
Result<Spawned> spawn(const SpawnSpec& spec);

}  // namespace muster
