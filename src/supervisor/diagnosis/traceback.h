// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster {

struct TracebackFrame {
  std::string file;
  int line = 0;
};

// The last Python traceback in a worker's output.
struct Traceback {
  std::string type;                     // "ValueError", "torch.OutOfMemoryError"
  std::string message;                  // one line, may be empty
  std::string cause;                    // "KeyError: 'x'" that a chain began with
  std::optional<TracebackFrame> where;  // last frame outside of installed libraries, else the last
  std::vector<std::string> lines;       // all of it, chained ones included
  size_t lines_before = 0;              // lines that are not blank
  size_t lines_after = 0;
  bool aside = false;  // of a thread, a child process or a destructor: the process went on after it

  // "ValueError: bad shape (train.py:41)"
  std::string summary() const;
};

// Looks for tracebacks without any help from the program: plain, chained, of exception groups,
// syntax errors (which have no header), with a prefix on each line such as "[rank0]: ". Takes the
// last one that ended a process, else the last one.
std::optional<Traceback> find_traceback(const std::vector<std::string>& clean_lines);

}  // namespace muster
