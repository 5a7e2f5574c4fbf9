// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nccl/report/fixed_text.h"

namespace muster::comm::detail {

// Where a thread was, as addresses. Capturing and describing allocate nothing and may be done in a
// signal handler.
class Stack {
 public:
  struct Frame {
    uintptr_t pc = 0;
    bool exact = false;  // the instruction that failed; otherwise the one after a call
  };
  static constexpr size_t kMaxFrames = 96;

  // Of the caller, innermost first; of a deep one the innermost.
  void capture();
  // Of what a signal interrupted, from within its handler.
  void capture_interrupted(const void* ucontext);
  void clear() { count_ = 0; }

  std::span<const Frame> frames() const { return {frames_.data(), count_}; }
  // Forgets the innermost ones.
  void drop(size_t count);
  void add(Frame frame) {
    if (count_ < kMaxFrames) frames_[count_++] = frame;
  }

 private:
  std::array<Frame, kMaxFrames> frames_{};
  size_t count_ = 0;
};

// Where a signal has interrupted the program; 0 where this processor is not known.
struct Interrupted {
  uintptr_t pc = 0;
  uintptr_t stack = 0;   // pointer
  uintptr_t caller = 0;  // where the function just entered would return to, if one was
};
Interrupted interrupted_at(const void* ucontext);

enum class Names {
  kPlain,      // as the compiler made them: for signal handlers
  kDemangled,  // allocates
};

// One line for each frame, the innermost last, as Python does it:
// "  train_step(Model&, int) in trainer+0x1234\n". The machinery of throwing at the inner end is
// left out, and at the outer end what is outside record(). Without the program's symbol table
// (stripped) names that are not exported are missing; `addr2line -e trainer 0x1234` gives the line
// of a program built with -g.
void describe(const Stack& stack, Names names, FixedText& to);

}  // namespace muster::comm::detail
