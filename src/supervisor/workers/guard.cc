// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "loop/check.h"
#include "loop/fd_watch.h"
#include "supervisor/workers/front.h"
#include "supervisor/workers/proc_fs.h"

namespace muster {

namespace {

// Whoever looks for muster or for the script that it runs (killall muster, pkill -9 -f train.py)
// must find the front alone: its signals arrive here, and one of the two is left to clean up. So
// the supervisor changes its name and its command line. Of the name 15 characters count.
constexpr const char* kSupervisorName = "mstr-supervisor";

// One signal to both processes arrives here twice, by two ways, within this time.
constexpr Milliseconds kTwinWindow{1'000};

sigset_t relayed_signals(const std::vector<int>& signals) {
  sigset_t relayed;
  sigemptyset(&relayed);
  auto add = [&](int signal) {
    struct sigaction action {};
    if (signal == SIGKILL || signal == SIGSTOP || signal == SIGCHLD) return;
    if (sigaction(signal, nullptr, &action) != 0) return;
    // Ignored by nohup: that is what it is for. Shells also start a script's background jobs with
    // SIGINT and SIGQUIT ignored, but whoever sends those to us by pid wants the job stopped.
    if (signal == SIGHUP && action.sa_handler == SIG_IGN) return;
    ::signal(signal, SIG_DFL);
    sigaddset(&relayed, signal);
  };
  for (int signal : signals)
    add(signal);
  add(SIGUSR1);
  add(SIGUSR2);
  return relayed;
}

[[noreturn]] void cannot_start(const char* what) {
  dprintf(STDERR_FILENO, "muster: %s: %s\n", what, strerror(errno));
  _exit(1);
}

// The arguments lie one behind the other from argv[0] on, and /proc/<pid>/cmdline shows that
// memory.
void change_command_line(const std::string& title) {
  const std::string before = read_proc_file("/proc/self/cmdline").value_or("");
  char* const begin = program_invocation_name;
  if (before.c_str() != std::string_view(begin)) return;  // somebody else changed it
  memset(begin, 0, before.size());
  title.copy(begin, before.empty() ? 0 : before.size() - 1);
}

void become_supervisor(int front_pid) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prctl(PR_SET_NAME, kSupervisorName, 0, 0, 0);
  change_command_line(std::string(kSupervisorName) + " of " + std::to_string(front_pid));
  // The terminal belongs to another session now; a closed pipe, or a file that may not grow any
  // more (ulimit -f), is an error to handle.
  for (int signal : {SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ})
    ::signal(signal, SIG_IGN);
}

std::set<int> children_so_far() {
  std::set<int> children;
  for (const ProcStat& found : descendants_of(getpid())) {
    if (found.ppid == getpid()) children.insert(found.pid);
  }
  return children;
}

}  // namespace

GuardLink split_off_supervisor(const std::vector<int>& signals) {
  FrontPlan front;
  front.relayed = relayed_signals(signals);
  front.own_children = children_so_far();
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    cannot_start("socketpair");
  }
  front.socket.reset(sockets[0]);
  GuardLink link;
  link.socket.reset(sockets[1]);
  link.front_pid = getpid();

  // Ignored, it would make the kernel reap our children without a word.
  signal(SIGCHLD, SIG_DFL);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  // From here on no signal is lost: it waits until the front, or the loop, reads it.
  sigset_t blocked = front.relayed;
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  front.supervisor = fork();
  if (front.supervisor < 0) cannot_start("fork");
  if (front.supervisor > 0) {
    link.socket.reset();
    run_front(std::move(front));
  }
  front.socket.reset();
  become_supervisor(link.front_pid);
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  sigprocmask(SIG_UNBLOCK, &child_signal, nullptr);
  link.signals.reset(signalfd(-1, &front.relayed, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!link.signals) cannot_start("signalfd");
  return link;
}

std::string user_name(unsigned uid, std::string_view passwd) {
  // name:password:uid:...
  const std::string wanted = std::to_string(uid);
  while (!passwd.empty()) {
    const size_t end = passwd.find('\n');
    const std::string_view line = passwd.substr(0, end);
    passwd.remove_prefix(end == std::string_view::npos ? passwd.size() : end + 1);
    const size_t name_end = line.find(':');
    if (name_end == std::string_view::npos) continue;
    const size_t password_end = line.find(':', name_end + 1);
    if (password_end == std::string_view::npos) continue;
    const size_t uid_end = line.find(':', password_end + 1);
    if (line.substr(password_end + 1, uid_end - password_end - 1) == wanted) {
      return std::string(line.substr(0, name_end));
    }
  }
  return {};
}

struct GuardChannel::Impl {
  enum class Way { kFront, kDirect };
  struct Recent {
    Way way;
    int signal;
    int pid;
    Clock::time_point time;
  };

  Impl(Loop& loop, GuardLink the_link, Callbacks the_callbacks)
      : link(std::move(the_link)), callbacks(std::move(the_callbacks)) {
    auto front =
        FdWatch::start(loop, link.socket.get(), FdWatch::kReadable, [this](int) { read_front(); });
    auto direct = FdWatch::start(loop, link.signals.get(), FdWatch::kReadable,
                                 [this](int) { read_direct(); });
    MUST(front.has_value() && direct.has_value());
    front_watch = std::move(*front);
    direct_watch = std::move(*direct);
  }

  // One record a call: the callback may drop us.
  void read_front() {
    SignalRecord record;
    const ssize_t got = recv(link.socket.get(), &record, sizeof record, MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof record)) {
      record.command[sizeof record.command - 1] = '\0';
      return tell(record, Way::kFront);
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    front_watch.reset();
    if (callbacks.on_front_lost) callbacks.on_front_lost();
  }

  void read_direct() {
    signalfd_siginfo info{};
    const ssize_t got = read(link.signals.get(), &info, sizeof info);
    if (got != static_cast<ssize_t>(sizeof info)) return;
    tell(describe_sender(static_cast<int32_t>(info.ssi_signo), info.ssi_code,
                         static_cast<int32_t>(info.ssi_pid), info.ssi_uid),
         Way::kDirect);
  }

  // Whether this is a signal that came the other way before.
  bool is_twin(const SignalRecord& record, Way way) {
    const Clock::time_point now = Clock::now();
    std::erase_if(recent, [&](const Recent& one) { return now - one.time > kTwinWindow; });
    auto twin = std::find_if(recent.begin(), recent.end(), [&](const Recent& one) {
      return one.way != way && one.signal == record.signal && one.pid == record.pid;
    });
    if (record.pid != 0 && twin != recent.end()) {
      recent.erase(twin);
      return true;
    }
    recent.push_back({way, record.signal, record.pid, now});
    return false;
  }

  void tell(const SignalRecord& record, Way way) {
    if (is_twin(record, way)) return;
    event::SignalReceived received;
    received.signal = record.signal;
    received.sender_pid = record.code == SI_KERNEL ? 0 : record.pid;
    received.sender_uid = static_cast<int>(record.uid);
    if (record.pid == 0 && record.code == SI_USER) {
      received.sender = "outside the container";  // whoever it is has no pid in here
    } else if (received.sender_pid != 0) {
      received.sender = user_name(record.uid, read_proc_file("/etc/passwd").value_or(""));
      if (received.sender.empty()) received.sender = "uid " + std::to_string(record.uid);
      if (record.command[0] != '\0') received.sender += std::string(", ") + record.command;
    }
    if (callbacks.on_signal) callbacks.on_signal(received);
  }

  GuardLink link;
  Callbacks callbacks;
  std::vector<Recent> recent;
  Owned<FdWatch> front_watch;
  Owned<FdWatch> direct_watch;
};

GuardChannel::GuardChannel(Loop& loop, GuardLink link, Callbacks callbacks)
    : impl_(std::make_unique<Impl>(loop, std::move(link), std::move(callbacks))) {}

GuardChannel::~GuardChannel() = default;

}  // namespace muster
