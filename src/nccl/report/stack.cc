// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/stack.h"

#include <cxxabi.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstdlib>

#include "nccl/report/symbols.h"
#include "nccl/report/throw_watch.h"

namespace muster::comm::detail {
namespace {

constexpr size_t kMaxName = 400;   // of a function, templates and all
constexpr size_t kMachinery = 16;  // frames between a throw and whom the unwinder asks

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* stack) {
  int exact = 0;
  const uintptr_t pc = _Unwind_GetIPInfo(context, &exact);
  if (pc == 0 && exact == 0) return _URC_END_OF_STACK;  // below a thread's first function
  auto* to = static_cast<Stack*>(stack);
  to->add({pc, exact != 0});
  return to->frames().size() < Stack::kMaxFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// A word of memory that may not be there.
uintptr_t read_word(uintptr_t address) {
  uintptr_t word = 0;
  iovec to = {&word, sizeof(word)};
  iovec from = {pointer_to(address), sizeof(word)};
  const ssize_t count = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
  return count == sizeof(word) ? word : 0;
}

// How many of the innermost frames belong to throwing itself.
size_t machinery(std::span<const Stack::Frame> frames, SymbolFinder& finder) {
  size_t drop = 0;
  for (size_t i = 0; i < std::min(frames.size(), kMachinery); i++) {
    const std::string_view name = finder.find(frames[i].pc, frames[i].exact).name;
    for (const char* last :
         {"__cxa_throw", "__cxa_rethrow", "17rethrow_exception", "St9terminatev"}) {
      if (name.find(last) != std::string_view::npos) drop = i + 1;
    }
  }
  return drop;
}

size_t outside(std::span<const Stack::Frame> frames) {
  for (size_t i = 0; i < frames.size(); i++) {
    // The frame below the watch is what it calls: ours too.
    if (in_watch(frames[i].pc)) return i > 0 ? i - 1 : 0;
  }
  return frames.size();
}

void add_name(std::string_view name, Names names, FixedText& to) {
  if (name.empty()) return to.add("??");
  int status = -1;
  char* demangled = nullptr;
  if (names == Names::kDemangled) {
    // Symbol::name has a 0 behind it.
    demangled = abi::__cxa_demangle(name.data(), nullptr, nullptr, &status);
  }
  const std::string_view text = status == 0 ? demangled : name;
  to.add(text.substr(0, kMaxName));
  if (text.size() > kMaxName) to.add("...");
  std::free(demangled);
}

void add_line(const Symbol& symbol, Names names, FixedText& to) {
  to.add("  ");
  add_name(symbol.name, names, to);
  to.add(symbol.module.empty() ? " at " : " in ");
  to.add(symbol.module);
  if (!symbol.module.empty()) to.add("+");
  to.add_address(symbol.address);
  to.add("\n");
}

}  // namespace

void Stack::capture() {
  count_ = 0;
  _Unwind_Backtrace(add_frame, this);
}

void Stack::drop(size_t count) {
  count = std::min(count, count_);
  std::move(frames_.begin() + static_cast<ptrdiff_t>(count),
            frames_.begin() + static_cast<ptrdiff_t>(count_), frames_.begin());
  count_ -= count;
}

void Stack::capture_interrupted(const void* ucontext) {
  capture();
  const Interrupted at = interrupted_at(ucontext);
  size_t handler = 0;
  while (handler < count_ && frames_[handler].pc != at.pc)
    handler++;
  if (handler < count_) {
    drop(handler);
    // Nothing can be unwound from an address that is no function's, after a call through a null
    // pointer, say; but the call itself is known.
    if (count_ == 1 && at.caller != 0) add({at.caller, false});
  }
}

Interrupted interrupted_at(const void* ucontext) {
  Interrupted at;
#if defined(__x86_64__)
  const auto& registers = static_cast<const ucontext_t*>(ucontext)->uc_mcontext.gregs;
  at.pc = static_cast<uintptr_t>(registers[REG_RIP]);
  at.stack = static_cast<uintptr_t>(registers[REG_RSP]);
  at.caller = read_word(at.stack);
#elif defined(__aarch64__)
  const auto& registers = static_cast<const ucontext_t*>(ucontext)->uc_mcontext;
  at.pc = registers.pc;
  at.stack = registers.sp;
  at.caller = registers.regs[30];
#endif
  return at;
}

void describe(const Stack& stack, Names names, FixedText& to) {
  SymbolFinder finder;
  const auto frames = stack.frames();
  const size_t end = outside(frames);
  const size_t begin = std::min(machinery(frames, finder), end);
  if (end == Stack::kMaxFrames) to.add("  ...\n");
  for (size_t i = end; i > begin; i--) {
    add_line(finder.find(frames[i - 1].pc, frames[i - 1].exact), names, to);
    size_t more = 0;
    while (i - 1 > begin && frames[i - 2].pc == frames[i - 1].pc) {
      more++;
      i--;
    }
    if (more == 0) continue;
    to.add("  ... ");
    to.add_number(more);
    to.add(" more of the same\n");
  }
}

}  // namespace muster::comm::detail
