// SPDX-License-Identifier: Apache-2.0
//
// The child runs in our memory, on a stack of its own, while this thread waits until it has called
// execve or ended (CLONE_VM | CLONE_VFORK): nothing is copied, so the cost does not grow with our
// size, and what went wrong in the child can simply be written into a struct. The price is that the
// child may only make system calls: no allocation, no lock, no signal handler of ours. All signals
// are therefore blocked around the clone, and the child resets every disposition before it opens
// the mask again.
#include "supervisor/workers/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "supervisor/workers/signals_blocked.h"

namespace muster {

namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr int kKernelSignals = 64;
constexpr int kFirstOwnFd = 3;

enum class Step { kNone, kSession, kTerminal, kAffinity, kFileLimit, kStdio, kSignals, kExec };

struct ChildStdio {
  StdioSource::Kind kind;
  int fd;
  const char* path;
};

// What the child reads, and the answers that it writes.
struct ChildPlan {
  const char* executable;
  char* const* argv;
  char* const* environment;
  ChildStdio stdio[3];
  bool controlling_terminal;
  const unsigned long* cpu_mask;
  size_t cpu_mask_bytes;
  int cgroup;  // -1 also when the clone itself has put the child there
  const rlimit* file_limit;
  int highest_fd;  // only for kernels without close_range
  pid_t parent;

  volatile bool entered;
  volatile Step failed_step;
  volatile int failed_stdio;
  volatile int error;
};

// The child's half must not be instrumented: a sanitizer would mark the shared shadow memory of a
// stack that is never returned from.
#define MUSTER_IN_CHILD __attribute__((no_sanitize("address"), no_sanitize("undefined")))

[[noreturn]] MUSTER_IN_CHILD void child_fail(ChildPlan* plan, Step step) {
  plan->error = errno;
  plan->failed_step = step;
  for (;;)
    syscall(SYS_exit_group, 127);
}

MUSTER_IN_CHILD void child_reset_signals(ChildPlan* plan) {
  // The kernel's own struct, all zero: SIG_DFL, no flags. glibc's sigaction() refuses the two
  // signals that it keeps for itself, yet those too may have been ignored when muster started.
  unsigned char action[64] = {};
  for (int number = 1; number <= kKernelSignals; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    if (syscall(SYS_rt_sigaction, number, action, nullptr, kKernelSignals / 8) != 0) {
      child_fail(plan, Step::kSignals);
    }
  }
}

// Makes fd 0, 1 and 2 what the plan says. Everything that is opened lands at 3 or above, because
// the three are made to exist first.
MUSTER_IN_CHILD void child_place_stdio(ChildPlan* plan) {
  int source[3] = {0, 1, 2};
  for (int i = 0; i < 3; ++i) {
    plan->failed_stdio = i;
    if (syscall(SYS_fcntl, i, F_GETFD) < 0 &&
        syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR) < 0) {
      child_fail(plan, Step::kStdio);
    }
  }
  for (int i = 0; i < 3; ++i) {
    const ChildStdio& wanted = plan->stdio[i];
    plan->failed_stdio = i;
    long fd = i;
    if (wanted.kind == StdioSource::Kind::kNull) {
      fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", (i == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    } else if (wanted.kind == StdioSource::Kind::kFile) {
      fd = syscall(SYS_openat, AT_FDCWD, wanted.path,
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
    } else if (wanted.kind == StdioSource::Kind::kFd) {
      // A source among the three would be overwritten before its turn.
      fd = wanted.fd >= kFirstOwnFd || wanted.fd == i
               ? wanted.fd
               : syscall(SYS_fcntl, wanted.fd, F_DUPFD_CLOEXEC, kFirstOwnFd);
    }
    if (fd < 0) child_fail(plan, Step::kStdio);
    source[i] = static_cast<int>(fd);
  }
  for (int i = 0; i < 3; ++i) {
    plan->failed_stdio = i;
    long done =
        source[i] == i ? syscall(SYS_fcntl, i, F_SETFD, 0) : syscall(SYS_dup3, source[i], i, 0);
    if (done < 0) child_fail(plan, Step::kStdio);
  }
}

MUSTER_IN_CHILD void child_close_others(ChildPlan* plan) {
  if (syscall(SYS_close_range, kFirstOwnFd, ~0U, 0) == 0) return;
  for (int fd = kFirstOwnFd; fd <= plan->highest_fd; ++fd)
    syscall(SYS_close, fd);
}

MUSTER_IN_CHILD int child_main(void* argument) {
  auto* plan = static_cast<ChildPlan*>(argument);
  plan->entered = true;
  child_reset_signals(plan);
  // The signal is sent when our parent thread dies. If it died before this call, nobody sends it:
  // then we already have another parent.
  if (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) child_fail(plan, Step::kSession);
  if (syscall(SYS_getppid) != plan->parent) {
    errno = ESRCH;
    child_fail(plan, Step::kSession);
  }
  if (syscall(SYS_setsid) < 0) child_fail(plan, Step::kSession);
  // Where the kernel lets a process be traced by its ancestors alone (Yama, Ubuntu's default), this
  // lets what muster starts look at it as well. Elsewhere the call is unknown.
  syscall(SYS_prctl, PR_SET_PTRACER, plan->parent, 0, 0, 0);
  // A cgroup is a second net below the process group; without it a worker still runs.
  if (plan->cgroup >= 0) {
    const long procs = syscall(SYS_openat, plan->cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (procs >= 0) syscall(SYS_write, procs, "0", 1);
  }
  if (plan->cpu_mask != nullptr &&
      syscall(SYS_sched_setaffinity, 0, plan->cpu_mask_bytes, plan->cpu_mask) < 0) {
    child_fail(plan, Step::kAffinity);
  }
  child_place_stdio(plan);
  if (plan->controlling_terminal && syscall(SYS_ioctl, 0, TIOCSCTTY, 0) < 0) {
    child_fail(plan, Step::kTerminal);
  }
  child_close_others(plan);
  // Not before: until here there are as many descriptors as we have, which may be more.
  if (plan->file_limit != nullptr &&
      syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, plan->file_limit, nullptr) < 0) {
    child_fail(plan, Step::kFileLimit);
  }
  unsigned long nothing = 0;
  if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &nothing, nullptr, kKernelSignals / 8) != 0) {
    child_fail(plan, Step::kSignals);
  }
  syscall(SYS_execve, plan->executable, plan->argv, plan->environment);
  child_fail(plan, Step::kExec);
}

// A stack with a guard page below it.
class ChildStack {
 public:
  ChildStack()
      : base_(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {
    if (valid()) mprotect(base_, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_NONE);
  }
  ~ChildStack() {
    if (valid()) munmap(base_, kStackBytes);
  }
  ChildStack(const ChildStack&) = delete;
  ChildStack& operator=(const ChildStack&) = delete;

  bool valid() const { return base_ != MAP_FAILED; }
  void* base() const { return base_; }
  void* top() const { return static_cast<char*>(base_) + kStackBytes; }

 private:
  void* base_;
};

void reap(int pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

constexpr int kCloneFlags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD;

// Puts the child into its cgroup at birth: moving it there afterwards makes the kernel wait for a
// grace period of all CPUs, 15 ms and more for the first worker. glibc has no wrapper, and a child
// on another stack cannot return through a function, hence the assembly. Says -1 where it cannot
// be done; then the child moves itself.
int clone_into_cgroup([[maybe_unused]] const ChildStack& stack, [[maybe_unused]] ChildPlan* plan,
                      [[maybe_unused]] int* pidfd) {
#if defined(__x86_64__) && defined(CLONE_INTO_CGROUP)
  if (plan->cgroup < 0) return -1;
  clone_args args{};
  args.flags = static_cast<uint64_t>(kCloneFlags) | CLONE_INTO_CGROUP;
  args.pidfd = reinterpret_cast<uint64_t>(pidfd);
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<uint64_t>(stack.base());
  args.stack_size = kStackBytes;
  args.cgroup = static_cast<uint64_t>(plan->cgroup);
  const int cgroup = std::exchange(plan->cgroup, -1);
  register int (*entry)(void*) asm("r8") = child_main;
  register void* argument asm("r9") = plan;
  long result;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r9, %%rdi\n\t"
      "call *%%r8\n\t"
      "ud2\n"
      "1:"
      : "=a"(result)
      : "a"(SYS_clone3), "D"(&args), "S"(sizeof args), "r"(entry), "r"(argument)
      : "rcx", "r11", "memory", "cc");
  if (result > 0 && plan->entered) return static_cast<int>(result);
  plan->cgroup = cgroup;
  // Where cgroup.kill counts its uses (Linux 6.18 does), a child that is born from a cgroup where
  // it was used into one where it was not is taken for one that escaped, and dies before its first
  // instruction.
  if (result > 0) {
    close(*pidfd);
    reap(static_cast<int>(result));
  }
#endif
  return -1;
}

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings)
    pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<unsigned long> cpu_mask(const std::vector<int>& cpus) {
  constexpr int kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (int cpu : cpus) {
    MUST(cpu >= 0);
    size_t word = static_cast<size_t>(cpu / kBits);
    if (mask.size() <= word) mask.resize(word + 1);
    mask[word] |= 1UL << (cpu % kBits);
  }
  return mask;
}

int highest_possible_fd() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
}

Error step_error(const ChildPlan& plan, const std::string& step) {
  Error error = errno_error(plan.error, step);
  error.code = kNotExecuted;
  return error;
}

const char* const kStdioNames[3] = {"stdin", "stdout", "stderr"};

Error child_error(const SpawnSpec& spec, const ChildPlan& plan) {
  switch (plan.failed_step) {
    case Step::kNone:
    case Step::kSession:
      return step_error(plan, "start a session for " + spec.executable);
    case Step::kTerminal:
      return step_error(plan, "make the pseudo-terminal the controlling one");
    case Step::kAffinity:
      return step_error(plan, "bind to CPUs");
    case Step::kFileLimit:
      return step_error(plan, "set the limit of open files");
    case Step::kStdio: {
      const StdioSource& source = spec.stdio[static_cast<size_t>(plan.failed_stdio)];
      std::string what = std::string("open ") + kStdioNames[plan.failed_stdio];
      if (source.kind == StdioSource::Kind::kFile) what += " " + source.path;
      return step_error(plan, what);
    }
    case Step::kSignals:
      return step_error(plan, "reset signals");
    case Step::kExec:
      break;
  }
  Error error = errno_error(plan.error, "execute " + spec.executable);
  if (plan.error == ENOENT && access(spec.executable.c_str(), F_OK) == 0) {
    error.message += " (the file is there; the interpreter that it names is not)";
  }
  return error;
}

}  // namespace

Result<Spawned> spawn(const SpawnSpec& spec) {
  const std::vector<char*> argv = c_strings(spec.argv);
  const std::vector<char*> environment = c_strings(spec.environment);
  const std::vector<unsigned long> mask = cpu_mask(spec.cpus);
  rlimit file_limit{};
  if (spec.file_limit > 0) {
    getrlimit(RLIMIT_NOFILE, &file_limit);
    file_limit.rlim_cur =
        std::min<rlim_t>(static_cast<rlim_t>(spec.file_limit), file_limit.rlim_max);
  }
  ChildPlan plan{};
  plan.executable = spec.executable.c_str();
  plan.argv = argv.data();
  plan.environment = environment.data();
  for (size_t i = 0; i < 3; ++i)
    plan.stdio[i] = {spec.stdio[i].kind, spec.stdio[i].fd, spec.stdio[i].path.c_str()};
  plan.controlling_terminal = spec.controlling_terminal;
  plan.cpu_mask = mask.empty() ? nullptr : mask.data();
  plan.cpu_mask_bytes = mask.size() * sizeof(unsigned long);
  plan.cgroup = spec.cgroup;
  plan.file_limit = spec.file_limit > 0 ? &file_limit : nullptr;
  plan.highest_fd = highest_possible_fd();
  plan.parent = getpid();

  ChildStack stack;
  if (!stack.valid()) return errno_error(errno, "map a stack for " + spec.executable);
  int pidfd = -1;
  int pid = -1;
  int clone_error = 0;
  {
    AllSignalsBlocked blocked;
    pid = clone_into_cgroup(stack, &plan, &pidfd);
    if (pid < 0) {
      pid = clone(child_main, stack.top(), kCloneFlags | SIGCHLD, &plan, &pidfd);
    }
    clone_error = errno;
  }
  if (pid < 0) return errno_error(clone_error, "create a process for " + spec.executable);
  Spawned spawned{pid, UniqueFd(pidfd)};
  if (plan.failed_step == Step::kNone) return spawned;
  reap(pid);
  return child_error(spec, plan);
}

}  // namespace muster
