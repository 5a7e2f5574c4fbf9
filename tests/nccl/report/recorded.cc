// SPDX-License-Identifier: Apache-2.0
// A worker that ends as it is told, within record(): `recorded HOW`. With PREVIOUS in the
// environment it has handlers of its own for fatal signals before.
#undef NDEBUG  // one of the ends is an assertion
#include <assert.h>
#include <muster/comm/error.h>
#include <muster/comm/record.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

// The sanitizers' own handlers would make an exit of a death.
extern "C" const char* __asan_default_options() {  // NOLINT: its name
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:"
         "allocator_may_return_null=1:detect_leaks=0";
}

// From then on there is no memory for anybody. (A limit of the system's would end a program that is
// built with sanitizers.)
static std::atomic<bool> heap_is_full{false};

void* operator new(size_t size) {
  void* memory = heap_is_full ? nullptr : std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t /*size*/) noexcept {
  std::free(memory);
}

// What does wrong on purpose.
#define RAW __attribute__((noinline, no_sanitize("all")))

namespace trainer {

// Not inlined, so that the stacks have them; not static in `step`, static in the others: names that
// are not exported must be found too.
[[gnu::noinline]] int* nowhere() {
  static int* volatile pointer = nullptr;
  return pointer;
}

struct Model {
  RAW int step(int how) {
    *nowhere() = how;
    return how + 1;
  }
};

[[gnu::noinline]] static int throw_deep(int depth) {
  if (depth == 0) throw std::runtime_error("loss is \"NaN\"\nat step 7 \xff \u00e4");
  return throw_deep(depth - 1) + 1;
}

[[gnu::noinline]] static void nest() {
  try {
    std::map<int, int>().at(3);
  } catch (...) {
    std::throw_with_nested(std::runtime_error("cannot load"));
  }
}

[[gnu::noinline]] static void caught_below() {
  for (int i = 0; i < 3; i++) {
    try {
      throw_deep(2);
    } catch (const std::runtime_error&) {
    }
  }
}

RAW static int overflow(volatile char* above, int depth) {
  std::array<volatile char, 4096> here{};
  here[0] = above != nullptr ? above[0] : 1;
  return depth < 0 ? 0 : overflow(here.data(), depth + 1) + here[0];
}

static void previous(int signal) {
  constexpr const char kText[] = "the handler before was called\n";
  [[maybe_unused]] const ssize_t count = write(STDOUT_FILENO, kText, sizeof(kText) - 1);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  raise(signal);
}

RAW static const char* sneaky_text() {
  *nowhere() = 1;
  return "";
}

struct Sneaky : std::exception {
  const char* what() const noexcept override { return sneaky_text(); }
};

[[gnu::noinline]] static const char* missing_text() {
  throw std::out_of_range("no such text");
}

struct Mute : std::exception {
  const char* what() const noexcept override { return missing_text(); }
};

[[gnu::noinline]] static void throw_mute() {
  throw Mute();
}

[[gnu::noinline]] static void fill_the_heap() {
  heap_is_full = true;
  operator delete(operator new(1));
}

RAW static void touch_missing_memory() {
  const int fd = memfd_create("empty", MFD_CLOEXEC);
  void* memory = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  std::printf("%d\n", *static_cast<volatile char*>(memory));
}

RAW static void stop_at_breakpoint() {
#if defined(__x86_64__)
  asm volatile("int3");
#elif defined(__aarch64__)
  asm volatile("brk #0");
#else
  raise(SIGTRAP);
#endif
}

RAW static int divide(int by) {
  volatile int divisor = by;
  return 7 / divisor;
}

RAW static void jump_nowhere() {
  using Function = void (*)();
  static Function volatile function = nullptr;
  function();
}

// What lies above this frame is no longer a stack: unwinding it crashes or ends early.
RAW static void break_the_stack() {
  // Not by memset(): a sanitizer's stands for it, and finds out.
  auto* above = static_cast<volatile char*>(__builtin_frame_address(0));
  for (int i = 0; i < 64; i++)
    above[i] = 0x41;
  *nowhere() = 1;
}

static void crash_in_threads() {
  std::array<std::thread, 8> threads;
  for (std::thread& thread : threads) {
    thread = std::thread([] {
      pthread_setname_np(pthread_self(), "loader");
      Model().step(1);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

template <int kThread>
[[gnu::noinline]] static int throw_as(int depth) {
  if (depth == 0) throw std::runtime_error("thread " + std::to_string(kThread));
  return throw_as<kThread>(depth - 1) + 1;
}

// All at once, and each from a stack that looks like no other.
template <int... kThread>
static void throw_together(std::integer_sequence<int, kThread...> /*threads*/) {
  std::barrier together(sizeof...(kThread));
  std::array threads = {std::thread([&together] {
    together.arrive_and_wait();
    throw_as<kThread>(8 * kThread);
  })...};
  for (std::thread& thread : threads)
    thread.join();
}

static int forked_child_crashes() {
  const pid_t child = fork();
  if (child == 0) std::exit(Model().step(1));
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 0 : 9;
}

static void fail_with_our_error() {
  muster::comm::Error error;
  error.code = muster::comm::ErrorCode::kTimeout;
  error.message = "all_reduce #128: rank 3 has not come";
  error.ranks = {3, 5};
  muster::comm::Result<int>(error).value();
}

static void fail_outside() {
  try {
    fail_with_our_error();
  } catch (...) {
    std::throw_with_nested(std::runtime_error("epoch 3 failed"));
  }
}

static void raise_signal(const std::string& how) {
  if (how == "segv") Model().step(1);
  if (how == "abort") std::abort();
  if (how == "assert") assert(how.empty());
  if (how == "bus") touch_missing_memory();
  if (how == "fpe") divide(0);
  if (how == "trap") __builtin_trap();
  if (how == "breakpoint") stop_at_breakpoint();
  if (how == "overflow") overflow(nullptr, 0);
  if (how == "null_call") jump_nowhere();
  if (how == "broken_stack") break_the_stack();
  if (how == "threads") crash_in_threads();
}

static int end(const std::string& how) {
  if (how == "throw") throw_deep(5);
  if (how == "nested") nest();
  if (how == "outer") fail_outside();
  if (how == "value") throw 7;  // NOLINT: people do
  if (how == "error") fail_with_our_error();
  if (how == "caught") caught_below();
  if (how == "sneaky") throw Sneaky();
  if (how == "mute") throw_mute();
  if (how == "mute_noexcept") []() noexcept { throw_mute(); }();
  if (how == "full_heap") fill_the_heap();
  if (how == "thread_throws") std::thread([] { throw_deep(2); }).join();
  if (how == "threads_throw") throw_together(std::make_integer_sequence<int, 8>());
  if (how == "noexcept") []() noexcept { throw_deep(2); }();
  if (how == "pthread_exit") pthread_exit(nullptr);
  if (how == "child") return forked_child_crashes();
  if (how == "wait") {
    std::puts("waiting");
    std::fflush(stdout);
    while (true)
      pause();
  }
  if (how == "code") return 5;
  raise_signal(how);
  return 0;
}

}  // namespace trainer

int main(int argc, char** argv) {
  if (std::getenv("PREVIOUS") != nullptr) {
    for (const int number : {SIGSEGV, SIGABRT, SIGFPE, SIGTRAP})
      ::signal(number, trainer::previous);
  }
  const std::string how = argc > 1 ? argv[1] : "";
  return muster::comm::record([&] { return trainer::end(how); });
}
