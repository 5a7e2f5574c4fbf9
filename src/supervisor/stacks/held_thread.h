// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loop/loop.h"
#include "loop/result.h"

namespace muster {

// Registers as DWARF numbers them, and where the thread stands.
struct ThreadRegisters {
#if defined(__aarch64__)
  static constexpr size_t kCount = 32;
#else
  static constexpr size_t kCount = 17;
#endif
  std::array<uint64_t, kCount> dwarf{};
  uint64_t pc = 0;
  uint64_t sp = 0;
};

// A thread's registers and the end of its stack that is in use.
struct ThreadCopy {
  int tid = 0;
  ThreadRegisters registers;
  std::vector<std::byte> stack;  // from registers.sp on
};

// Where a mapping that has `address` ends in the text of /proc/<pid>/maps, 0 if none has.
uint64_t mapping_end(std::string_view maps, uint64_t address);

// Holds the thread still with ptrace, copies, lets it go. The error says why it cannot be
// seen; ETIMEDOUT: it may come to a stand later, and has to be let go then.
Result<ThreadCopy> copy_thread(int pid, int tid, std::string_view maps, size_t max_stack);

// Lets threads go that came to a stand after their time. What does not by `patience` stays in
// `tids`.
void let_go(std::vector<int>& tids, Milliseconds patience);

// Reads another process's memory; false if that is not there.
bool read_memory(int pid, uint64_t address, void* out, size_t size);

}  // namespace muster
