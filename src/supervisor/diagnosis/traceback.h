// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
  size_t said = 0;                      // the line of the exception (in a group of its first leaf)
  size_t lines_before = 0;              // lines that are not blank
  size_t lines_after = 0;
  bool aside = false;  // of a thread, a child process or a destructor: the process went on after it
  bool ignored = false;  // and it says so itself: a destructor, a task, a handler of a log

  // "ValueError: bad shape (train.py:41)"
  std::string summary() const;
};

// Looks for tracebacks without any help from the program: plain, chained, of exception groups,
// syntax errors (which have no header), with a prefix on each line such as "[rank0]: ". Takes the
// last one that ended a process, else the last one.
std::optional<Traceback> find_traceback(const std::vector<std::string>& clean_lines);

// Of Python itself or of an installed package: not what the user wrote.
bool is_library_file(std::string_view file);

}  // namespace muster
