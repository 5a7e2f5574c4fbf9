// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/throw_watch.h"

#include <unwind.h>

#include <cstdint>

#if defined(__x86_64__) || defined(__aarch64__)
#define MUSTER_THROW_WATCH 1
#endif

#ifdef MUSTER_THROW_WATCH

// Named in the unwind table, so it needs a plain name; hidden, so that two copies of this archive
// in two shared libraries do not meet.
extern "C" {
__attribute__((visibility("hidden"))) void muster_comm_watch(void (*body)(void*), void* argument);
__attribute__((visibility("hidden"))) extern const char muster_comm_watch_end[];
__attribute__((visibility("hidden"))) _Unwind_Reason_Code muster_comm_watch_asked(
    int version, _Unwind_Action actions, _Unwind_Exception_Class kind, _Unwind_Exception* exception,
    _Unwind_Context* context);
}

_Unwind_Reason_Code muster_comm_watch_asked(int /*version*/, _Unwind_Action actions,
                                            _Unwind_Exception_Class /*kind*/,
                                            _Unwind_Exception* /*exception*/,
                                            _Unwind_Context* /*context*/) {
  if ((actions & _UA_SEARCH_PHASE) != 0) muster::comm::detail::thrown_at().capture();
  return _URC_CONTINUE_UNWIND;
}

// 0x1b: relative to here, four bytes.
#ifdef __x86_64__
asm(R"(
  .pushsection .text
  .hidden muster_comm_watch
  .globl muster_comm_watch
  .type muster_comm_watch, @function
muster_comm_watch:
  .cfi_startproc
  .cfi_personality 0x1b, muster_comm_watch_asked
  subq $8, %rsp
  .cfi_def_cfa_offset 16
  movq %rdi, %rax
  movq %rsi, %rdi
  callq *%rax
  addq $8, %rsp
  .cfi_def_cfa_offset 8
  retq
  .cfi_endproc
  .size muster_comm_watch, . - muster_comm_watch
  .hidden muster_comm_watch_end
  .globl muster_comm_watch_end
muster_comm_watch_end:
  .popsection
)");
#else
asm(R"(
  .pushsection .text
  .p2align 2
  .hidden muster_comm_watch
  .globl muster_comm_watch
  .type muster_comm_watch, %function
muster_comm_watch:
  .cfi_startproc
  .cfi_personality 0x1b, muster_comm_watch_asked
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset 29, -16
  .cfi_offset 30, -8
  mov x29, sp
  mov x8, x0
  mov x0, x1
  blr x8
  ldp x29, x30, [sp], #16
  .cfi_def_cfa_offset 0
  .cfi_restore 29
  .cfi_restore 30
  ret
  .cfi_endproc
  .size muster_comm_watch, . - muster_comm_watch
  .hidden muster_comm_watch_end
  .globl muster_comm_watch_end
muster_comm_watch_end:
  .popsection
)");
#endif
#endif

namespace muster::comm::detail {

Stack& thrown_at() {
  thread_local Stack stack;
  return stack;
}

#ifdef MUSTER_THROW_WATCH
void call_watched(void (*body)(void*), void* argument) {
  muster_comm_watch(body, argument);
}

bool in_watch(uintptr_t address) {
  return address > reinterpret_cast<uintptr_t>(&muster_comm_watch) &&
         address <= reinterpret_cast<uintptr_t>(muster_comm_watch_end);
}
#else
void call_watched(void (*body)(void*), void* argument) {
  body(argument);
}
bool in_watch(uintptr_t) {
  return false;
}
#endif

}  // namespace muster::comm::detail
