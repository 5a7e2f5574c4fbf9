// SPDX-License-Identifier: Apache-2.0
#include "nccl/report/crash_handler.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "nccl/report/crash_text.h"
#include "nccl/report/error_file_writer.h"

// A signal handler may find the program in any state: inside malloc, with a broken heap, with the
// loader's lock held. So everything here is made beforehand or lies on the stack, and the error
// file is written twice: at once with what the signal says, and then again with the stack, which is
// read from memory that may be broken and whose names need the loader. If that crashes or hangs,
// the first one is there.
namespace muster::comm::detail {
namespace {

constexpr std::array kFatal = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
constexpr unsigned kStackSeconds = 5;  // for finding the stack and writing stderr
constexpr int kOthersMs = 10'000;      // for another thread that is at it
constexpr int kPollMs = 10;
constexpr size_t kAlternateStack = 256 * 1024;
constexpr size_t kMaxMessage = 2048;

// How far the telling got.
enum class Stage { kBegun, kCapturing, kDescribing, kTold };

struct State {
  ErrorFileWriter file;
  pid_t process = 0;
  std::atomic<pid_t> reporter{0};  // the thread that may tell; 0: nobody yet
  std::atomic<int> signal{0};      // that it tells about; 0: an exception
  std::atomic<Stage> stage{Stage::kBegun};
  uintptr_t pc = 0;  // what failed
  std::array<struct sigaction, kFatal.size()> before{};
  std::array<char, kMaxMessage> message_memory{};
  FixedText message{message_memory};
  std::array<char, 64 * 1024> callstack{};
  Stack stack;
  struct sigaction alarm_before {};
};
constinit State state;

pid_t this_thread() {
  return static_cast<pid_t>(syscall(SYS_gettid));
}

const struct sigaction& before(int signal) {
  size_t i = 0;
  while (i + 1 < kFatal.size() && kFatal[i] != signal)
    i++;
  return state.before[i];
}

// The end by `signal`, now, whoever blocks or handles it.
void die_of(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
}

// Whether the instruction that was interrupted is done again after the handler's return, and with
// it the signal comes again.
bool repeats(const siginfo_t& info) {
  if (info.si_code <= 0) return false;
  if (info.si_signo == SIGBUS) return info.si_code != BUS_MCEERR_AO;
#if defined(__x86_64__)
  if (info.si_signo == SIGTRAP) return false;  // it is past the breakpoint
#endif
  return true;
}

// After the return from the handler the signal comes again and meets who was there before us. A
// fault comes by itself (so that a core file shows it); anything else has to be sent.
void hand_on(int signal, siginfo_t* info) {
  sigaction(signal, &before(signal), nullptr);
  if (repeats(*info)) return;
  if (syscall(SYS_rt_tgsigqueueinfo, getpid(), this_thread(), signal, info) != 0) raise(signal);
}

void write_file(std::string_view message, std::string_view callstack,
                std::string_view comm_error = {}) {
  // The child of a fork is not the worker.
  if (getpid() == state.process) state.file.write(message, callstack, comm_error);
}

void on_alarm(int) {
  state.file.clean_up();
  die_of(state.signal);
}

// SIGALRM is not among the signals that our handlers block.
void limit_time() {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, &state.alarm_before);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  alarm(kStackSeconds);
}

void tell_stack() {
  state.stage = Stage::kDescribing;
  report_end(state.message.text(), state.stack, Names::kPlain);
  alarm(0);
  sigaction(SIGALRM, &state.alarm_before, nullptr);
}

void tell_signal(int signal, const siginfo_t& info, const void* context) {
  state.signal = signal;
  state.pc = interrupted_at(context).pc;
  describe_signal(info, context, state.message);
  write_file(state.message.text(), {});
  limit_time();
  state.stage = Stage::kCapturing;
  state.stack.capture_interrupted(context);
  tell_stack();
}

// The one who tells has crashed.
void crashed_again(int signal, siginfo_t* info, const void* context) {
  if (state.stage == Stage::kTold) return hand_on(signal, info);  // in what follows
  if (state.signal == 0) {
    // While it was finding out what an exception says.
    tell_signal(signal, *info, context);
    return hand_on(signal, info);
  }
  if (state.stage == Stage::kCapturing) {
    // The stack is broken; but one address is known.
    state.stack.clear();
    state.stack.add({state.pc, true});
    tell_stack();
  } else {
    write_all(STDERR_FILENO, state.message.text());
  }
  state.file.clean_up();
  die_of(state.signal);
}

void on_fatal_signal(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool ignored = before(signal).sa_handler == SIG_IGN && info->si_code <= 0;
  if (!ignored) {
    if (claim_report()) {
      tell_signal(signal, *info, context);
      hand_on(signal, info);
    } else if (state.reporter == this_thread()) {
      crashed_again(signal, info, context);
    } else {
      wait_for_report();
      hand_on(signal, info);
    }
  }
  errno = saved_errno;
}

// So that a handler has a stack when this thread's own is full. Stays: the thread may run as long
// as the process.
void make_alternate_stack() {
  stack_t now{};
  if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0 &&
      now.ss_size >= kAlternateStack) {
    return;
  }
  void* memory = mmap(nullptr, kAlternateStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kAlternateStack;
  sigaltstack(&stack, nullptr);
}

}  // namespace

void watch_for_crashes(const char* error_file) {
  state.process = getpid();
  state.file.prepare(error_file);
  prepare_signal_text();
  state.stack.capture();  // what the unwinder does only once happens here
  state.stack.clear();
  make_alternate_stack();
  struct sigaction action {};
  action.sa_sigaction = on_fatal_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // or a second crash would end us at once
  // Nothing shall come in between but a crash of our own and the time limit.
  sigfillset(&action.sa_mask);
  sigdelset(&action.sa_mask, SIGALRM);
  for (const int signal : kFatal)
    sigdelset(&action.sa_mask, signal);
  for (size_t i = 0; i < kFatal.size(); i++)
    sigaction(kFatal[i], nullptr, &state.before[i]);
  for (const int signal : kFatal)
    sigaction(signal, &action, nullptr);
}

bool claim_report() {
  pid_t nobody = 0;
  return state.reporter.compare_exchange_strong(nobody, this_thread());
}

bool asking_exception() {
  return state.reporter == this_thread() && state.signal == 0 && state.stage != Stage::kTold;
}

void wait_for_report() {
  if (state.reporter == this_thread()) return;
  for (int waited = 0; state.stage != Stage::kTold && waited < kOthersMs; waited += kPollMs) {
    poll(nullptr, 0, kPollMs);
  }
}

void report_end(std::string_view message, const Stack& stack, Names names, std::string_view causes,
                std::string_view comm_error) {
  FixedText text(state.callstack);
  if (!stack.frames().empty()) {
    text.add("Stack (most recent call last):\n");
    describe(stack, names, text);
  }
  text.add(message);
  text.add("\n");
  text.add(causes);
  write_file(message, text.text(), comm_error);
  write_all(STDERR_FILENO, text.text());
  state.stage = Stage::kTold;
}

}  // namespace muster::comm::detail
