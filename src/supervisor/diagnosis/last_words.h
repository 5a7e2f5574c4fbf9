// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster {

// What the run-time of C++ prints about an exception that nobody caught, or about std::terminate.
struct TerminateText {
  std::string type;     // "std::runtime_error", "" if it was no exception
  std::string message;  // its what(), first line
  size_t line = 0;      // of the what(), else of the announcement
  size_t begin = 0;     // the announcement
  size_t end = 0;       // behind the last line of the what()

  std::string summary() const;  // "std::runtime_error: NaN"
};

// The last one in the lines: of GCC's library or of Clang's.
std::optional<TerminateText> find_terminate(const std::vector<std::string>& clean_lines);

// A dump of Python's faulthandler: "Fatal Python error: Segmentation fault" and the stacks.
struct FaultDump {
  std::string error;  // "Segmentation fault"
  size_t begin = 0;   // its line
  size_t end = 0;     // behind the stack of the thread that it happened in
  size_t line = 0;    // the frame to look at: the innermost outside of installed libraries
  std::string where;  // "forward (model.py:41)", "" without frames
};
std::optional<FaultDump> find_fault_dump(const std::vector<std::string>& clean_lines);

}  // namespace muster
