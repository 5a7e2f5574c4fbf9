// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// One call of a Python function.
struct PythonFrame {
  std::string function;
  std::string file;
  int line = 0;  // 0: unknown
};

// Reads another process's memory; false where there is none.
using ReadMemory = std::function<bool(uint64_t address, void* out, size_t size)>;

// Where an interpreter keeps what we look for, and which it is: the addresses of its symbols
// _PyRuntime and Py_Version.
struct PythonPlace {
  uint64_t runtime = 0;
  uint64_t version = 0;
};

// Most that is read; a process that changes meanwhile may show us anything.
inline constexpr size_t kMaxPythonThreads = 512;
inline constexpr size_t kMaxPythonFrames = 128;
inline constexpr size_t kMaxPythonName = 512;

// The Python stacks of a process's threads, innermost call first, by thread id. None if its
// interpreter is not one of CPython 3.11 to 3.14, with the reason in `trouble`.
std::map<int, std::vector<PythonFrame>> read_python_stacks(const PythonPlace& place,
                                                           const ReadMemory& read,
                                                           std::string& trouble);

// The line of the instruction at byte `offset` by a code object's table of locations (CPython's
// InternalDocs/code_objects.md), `first_line` if the table does not tell.
int python_line(std::string_view table, int first_line, uint64_t offset);

}  // namespace muster
