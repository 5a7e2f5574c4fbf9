// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// What a worker recorded about its own failure (torch's @record writes it, and muster::comm's
// record()). Evidence only: it adds
// text to a failure that is known from the exit status, and its clock is never used.
struct ErrorFile {
  enum class Form {
    kUnreadable,  // empty, cut off, not JSON, no message: `problem` says what
    kFull,        // {"message": {"message": ..., "extraInfo": {"py_callstack": ...}}}
    kText,        // {"message": "text"}
  };
  Form form = Form::kUnreadable;
  std::string problem;
  std::string message;                 // first line, cleaned
  std::vector<std::string> callstack;  // cleaned; names of C++ as a person writes them
  std::string comm_error;              // of the worker library: "timeout", "peer_lost", ...

  // Written by a native program: not a Python traceback.
  bool native() const;
};

// Never fails: keys that are missing or of another type are left empty.
ErrorFile parse_error_file(std::string_view text);

}  // namespace muster
