// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stacks/held_thread.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "loop/loop.h"

namespace muster {

namespace {

// For a thread to stand. One that computes does so at once, one in a call as soon as that can be
// interrupted.
constexpr Milliseconds kPatience{500};

#if defined(__aarch64__)
using KernelRegisters = user_pt_regs;
ThreadRegisters from_kernel(const KernelRegisters& raw) {
  ThreadRegisters registers;
  std::copy(std::begin(raw.regs), std::end(raw.regs), registers.dwarf.begin());
  registers.dwarf[31] = raw.sp;
  registers.pc = raw.pc;
  registers.sp = raw.sp;
  return registers;
}
#elif defined(__x86_64__)
using KernelRegisters = user_regs_struct;
ThreadRegisters from_kernel(const KernelRegisters& raw) {
  ThreadRegisters registers;
  registers.dwarf = {raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi, raw.rbp, raw.rsp, raw.r8,
                     raw.r9,  raw.r10, raw.r11, raw.r12, raw.r13, raw.r14, raw.r15, raw.rip};
  registers.pc = raw.rip;
  registers.sp = raw.rsp;
  return registers;
}
#else
#error "stacks are read on x86-64 and AArch64"
#endif

// By it the kernel tells that a thread stands.
class ChildSignalBlocked {
 public:
  ChildSignalBlocked() {
    ::sigemptyset(&child_);
    ::sigaddset(&child_, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &child_, &before_);
  }
  ChildSignalBlocked(const ChildSignalBlocked&) = delete;
  ChildSignalBlocked& operator=(const ChildSignalBlocked&) = delete;
  ~ChildSignalBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Until it comes; false when the time is over.
  bool wait_until(Clock::time_point deadline) const {
    const auto left = std::chrono::nanoseconds(deadline - Clock::now()).count();
    if (left <= 0) return false;
    const timespec time{0, static_cast<long>(std::min<int64_t>(left, 999'999'999))};
    ::sigtimedwait(&child_, nullptr, &time);
    return true;
  }

 private:
  sigset_t child_{};
  sigset_t before_{};
};

// What it stands for: a signal of its own, which it still has to get, or 0.
int own_signal(int status) {
  return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

// Attached until it goes.
class Hold {
 public:
  explicit Hold(int tid) : tid_(tid) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (stands_) ::ptrace(PTRACE_DETACH, tid_, nullptr, static_cast<long>(signal_));
  }

  Result<void> take() {
    if (::ptrace(PTRACE_SEIZE, tid_, nullptr, nullptr) != 0) return refused();
    if (::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) {
      return errno_error(errno, "interrupt");
    }
    return wait();
  }

 private:
  static Error refused() {
    if (errno == ESRCH) return Error{ESRCH, "it is gone"};
    if (errno != EPERM) return errno_error(errno, "ptrace");
    return Error{EPERM,
                 "ptrace is not permitted: a debugger holds it, it runs as another user, or the "
                 "kernel forbids it (kernel.yama.ptrace_scope)"};
  }

  Result<void> wait() {
    const Clock::time_point deadline = Clock::now() + kPatience;
    for (;;) {
      int status = 0;
      const int got = ::waitpid(tid_, &status, __WALL | WNOHANG);
      if (got < 0 && errno != EINTR) return errno_error(errno, "wait");
      if (got == tid_) return look(status);
      if (!child_signal_.wait_until(deadline))
        return Error{ETIMEDOUT, "it does not stand still: it is in the kernel"};
    }
  }

  Result<void> look(int status) {
    if (!WIFSTOPPED(status)) return Error{ESRCH, "it is gone"};
    stands_ = true;
    signal_ = own_signal(status);
    return {};
  }

  const int tid_;
  const ChildSignalBlocked child_signal_;
  bool stands_ = false;
  int signal_ = 0;
};

// True if there is nothing left to wait for.
bool let_one_go(int tid) {
  int status = 0;
  const int got = ::waitpid(tid, &status, __WALL | WNOHANG);
  if (got < 0) return errno != EINTR;
  if (got != tid) return false;
  if (WIFSTOPPED(status)) {
    ::ptrace(PTRACE_DETACH, tid, nullptr, static_cast<long>(own_signal(status)));
  }
  return true;
}

uint64_t take_hex(std::string_view& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  text.remove_prefix(error == std::errc() ? static_cast<size_t>(end - text.data()) : 0);
  return number;
}

}  // namespace

uint64_t mapping_end(std::string_view maps, uint64_t address) {
  while (!maps.empty()) {
    std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(maps.size(), line.size() + 1));
    const uint64_t begin = take_hex(line);
    if (!line.starts_with('-')) continue;
    line.remove_prefix(1);
    const uint64_t end = take_hex(line);
    if (address >= begin && address < end) return end;
  }
  return 0;
}

bool read_memory(int pid, uint64_t address, void* out, size_t size) {
  iovec local{out, size};
  iovec remote{reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

void let_go(std::vector<int>& tids, Milliseconds patience) {
  const ChildSignalBlocked child_signal;
  const Clock::time_point deadline = Clock::now() + patience;
  for (;;) {
    std::erase_if(tids, let_one_go);
    if (tids.empty() || !child_signal.wait_until(deadline)) return;
  }
}

Result<ThreadCopy> copy_thread(int pid, int tid, std::string_view maps, size_t max_stack) {
  Hold hold(tid);
  if (Result<void> taken = hold.take(); !taken) return taken.error();
  KernelRegisters raw{};
  iovec place{&raw, sizeof raw};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &place) != 0) {
    return errno_error(errno, "read registers");
  }
  ThreadCopy copy;
  copy.tid = tid;
  copy.registers = from_kernel(raw);
  const uint64_t end = mapping_end(maps, copy.registers.sp);
  copy.stack.resize(std::min<uint64_t>(end - std::min(end, copy.registers.sp), max_stack));
  if (!read_memory(pid, copy.registers.sp, copy.stack.data(), copy.stack.size())) {
    copy.stack.clear();
  }
  return copy;
}

}  // namespace muster
