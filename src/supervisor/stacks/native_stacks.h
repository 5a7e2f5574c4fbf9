// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/stacks/thread_view.h"

namespace muster {

// Adds the stacks that a process's threads have in the program itself. Each thread is held still
// for the moment that copying its registers and its stack takes, well below a millisecond, and gets
// no signal; unwinding and naming work on the copy, when it runs again. (A call that waits may see
// that as EINTR, as with any debugger.) One for the whole probe: names that were found once are
// kept. Reads the program's files, so it may hang with the disk they are on.
class NativeStacks {
 public:
  // Most frames of a thread, and how much of its stack is copied.
  static constexpr size_t kMaxFrames = 128;
  static constexpr size_t kMaxStack = size_t{512} * 1024;

  NativeStacks() = default;
  NativeStacks(const NativeStacks&) = delete;
  NativeStacks& operator=(const NativeStacks&) = delete;
  ~NativeStacks();

  void add(ProcessView& process);

 private:
  static void add_python(ProcessView& process, const PythonPlace& place);

  using Place = std::pair<std::string, uint64_t>;  // a module's path, an address in it
  std::map<Place, NativeFrame> known_;
  std::vector<int> late_;  // threads that did not stand in time, and may still come to
};

// "int muster::(anonymous namespace)::f<int>(char const*)" is
// "muster::(anonymous namespace)::f".
std::string short_function_name(const std::string& name);

}  // namespace muster
