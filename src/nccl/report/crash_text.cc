// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/crash_text.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "nccl/report/stack.h"

namespace muster::comm::detail {
namespace {

// How far below the stack pointer a function reaches for its locals when the stack ends there.
constexpr uintptr_t kOverflowReach = uintptr_t{1} << 20;
constexpr uintptr_t kAbove = 4096;
constexpr size_t kMaxAbortMessage = 1000;

struct Cause {
  int signal;
  int code;
  std::string_view text;
  bool address;  // si_addr belongs to it
};

constexpr std::array kCauses = {
    Cause{SIGSEGV, SEGV_MAPERR, "nothing is mapped at address ", true},
    Cause{SIGSEGV, SEGV_ACCERR, "no permission for address ", true},
    Cause{SIGSEGV, SI_KERNEL, "no address that can be", false},
    Cause{SIGBUS, BUS_ADRALN, "an address that is not aligned: ", true},
    Cause{SIGBUS, BUS_ADRERR, "no memory behind the mapping at address ", true},
    Cause{SIGBUS, BUS_OBJERR, "a hardware error at address ", true},
    Cause{SIGBUS, BUS_MCEERR_AR, "a memory error of the hardware at address ", true},
    Cause{SIGBUS, BUS_MCEERR_AO, "a memory error of the hardware at address ", true},
    Cause{SIGFPE, FPE_INTDIV, "whole number divided by zero", false},
    Cause{SIGFPE, FPE_INTOVF, "whole number too large", false},
    Cause{SIGFPE, FPE_FLTDIV, "floating point number divided by zero", false},
    Cause{SIGFPE, FPE_FLTOVF, "floating point number too large", false},
    Cause{SIGFPE, FPE_FLTUND, "floating point number too small", false},
    Cause{SIGFPE, FPE_FLTRES, "floating point result not exact", false},
    Cause{SIGFPE, FPE_FLTINV, "invalid floating point operation", false},
    Cause{SIGILL, ILL_ILLOPC, "an instruction that this processor does not have, at ", true},
    Cause{SIGILL, ILL_ILLOPN, "an instruction that this processor does not have, at ", true},
    Cause{SIGILL, ILL_PRVOPC, "an instruction that is not allowed, at ", true},
    Cause{SIGTRAP, TRAP_BRKPT, "a breakpoint or __builtin_trap() at ", true},
    Cause{SIGTRAP, TRAP_TRACE, "a step of a debugger that is not there, at ", true},
    Cause{SIGTRAP, TRAP_HWBKPT, "a breakpoint of the hardware at ", true},
    Cause{SIGTRAP, SI_KERNEL, "a breakpoint", false},
};

std::string_view name_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGABRT:
      return "SIGABRT";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    case SIGTRAP:
      return "SIGTRAP";
    default:
      return "a signal";
  }
}

// The guard page below a thread's stack was touched.
bool is_overflow(const siginfo_t& info, const void* ucontext) {
  if (info.si_signo != SIGSEGV || info.si_code <= 0 || info.si_code == SI_KERNEL) return false;
  const auto address = reinterpret_cast<uintptr_t>(info.si_addr);
  const uintptr_t stack = interrupted_at(ucontext).stack;
  return address >= kAbove && address < stack + kAbove && address + kOverflowReach >= stack;
}

// What the C library said before it called abort(): an assertion, "free(): invalid pointer". Kept
// for debuggers under a name of its own; where it is not there, nothing is said.
struct AbortMessage {
  unsigned size;
  char text[1];
};
constinit AbortMessage* const* abort_message = nullptr;

void add_abort_message(FixedText& to) {
  if (abort_message == nullptr || *abort_message == nullptr) return;
  std::string_view text((*abort_message)->text);
  while (text.ends_with('\n'))
    text.remove_suffix(1);
  to.add(": ");
  to.add(text.substr(0, kMaxAbortMessage));
}

void add_sender(const siginfo_t& info, FixedText& to) {
  if (info.si_pid == getpid()) {
    to.add(info.si_signo == SIGABRT ? "abort() was called" : "raised by the program itself");
    if (info.si_signo == SIGABRT) add_abort_message(to);
    return;
  }
  to.add("sent by process ");
  to.add_number(static_cast<uint64_t>(info.si_pid));
}

void add_cause(const siginfo_t& info, const void* ucontext, FixedText& to) {
  if (info.si_code <= 0) return add_sender(info, to);
  if (is_overflow(info, ucontext)) to.add("the stack is full: ");
  for (const Cause& cause : kCauses) {
    if (cause.signal != info.si_signo || cause.code != info.si_code) continue;
    to.add(cause.text);
    if (cause.address) to.add_address(reinterpret_cast<uintptr_t>(info.si_addr));
    return;
  }
  to.add("code ");
  to.add_number(static_cast<uint64_t>(info.si_code));
}

void add_thread(FixedText& to) {
  const auto thread = static_cast<pid_t>(syscall(SYS_gettid));
  if (thread == getpid()) return;
  std::array<char, 17> name{};
  prctl(PR_GET_NAME, name.data());
  to.add(", in thread ");
  to.add_number(static_cast<uint64_t>(thread));
  to.add(" (");
  to.add(name.data());
  to.add(")");
}

}  // namespace

void prepare_signal_text() {
  abort_message =
      static_cast<AbortMessage* const*>(dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE"));
}

void describe_signal(const siginfo_t& info, const void* ucontext, FixedText& to) {
  to.add(name_of(info.si_signo));
  to.add(": ");
  add_cause(info, ucontext, to);
  add_thread(to);
}

}  // namespace muster::comm::detail
