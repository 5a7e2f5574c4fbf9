// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/own_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "supervisor/workers/signals_blocked.h"

namespace muster {

namespace {

// glibc 2.36 names it, older ones do not.
constexpr idtype_t kPidFd = static_cast<idtype_t>(3);
constexpr int kFirstFree = 3;
constexpr rlim_t kMostDescriptors = 1 << 20;

void reset_signals() {
  for (int number = 1; number < NSIG; ++number)
    ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void close_all_from(int first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  // A container's filter of system calls may be older than the call.
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kMostDescriptors));
  for (int fd = first; fd < end; ++fd)
    ::close(fd);
}

// Leaves `out`, next to the null device as standard streams.
int keep_only(int out) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  // Above those that are made here, which may be anywhere.
  const int kept = ::fcntl(out, F_DUPFD_CLOEXEC, kFirstFree + 1);
  if (null < 0 || kept < 0) ::_exit(1);
  for (int fd = 0; fd < kFirstFree; ++fd)
    ::dup2(null, fd);
  if (::dup3(kept, kFirstFree, O_CLOEXEC) < 0) ::_exit(1);
  close_all_from(kFirstFree + 1);
  return kFirstFree;
}

[[noreturn]] void run_child(pid_t parent, const char* name, int out,
                            const std::function<void(int)>& work) {
  // Handlers first: they would write into descriptors of the loop that are then another's.
  reset_signals();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) ::_exit(1);
  ::prctl(PR_SET_NAME, name, 0, 0, 0);
  work(keep_only(out));
  ::_exit(0);
}

}  // namespace

Result<OwnChild> OwnChild::start(const char* name, const std::function<void(int out)>& work) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error(errno, "make a pipe");
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  // The child alone gets to write into a blocking end.
  ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid();
  pid_t pid = -1;
  int error = 0;
  {
    const AllSignalsBlocked blocked;
    pid = ::fork();
    error = errno;
    if (pid == 0) run_child(parent, name, writer.get(), work);
  }
  if (pid < 0) return errno_error(error, "fork");
  // Nobody reaps it before this thread returns to the loop.
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    error = errno;
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return errno_error(error, "open a process");
  }
  return OwnChild(std::move(pidfd), std::move(reader));
}

OwnChild::~OwnChild() {
  end();
}

bool OwnChild::end(Milliseconds patience) {
  if (!pidfd_) return false;
  // One whose output has ended is on its way out: this changes nothing of how it ends.
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  pollfd ended{pidfd_.get(), POLLIN, 0};
  ::poll(&ended, 1, static_cast<int>(patience.count()));
  siginfo_t info{};
  ::waitid(kPidFd, static_cast<id_t>(pidfd_.get()), &info, WEXITED | WNOHANG);
  pidfd_.reset();
  return info.si_pid != 0 && info.si_code == CLD_EXITED && info.si_status == 0;
}

}  // namespace muster
