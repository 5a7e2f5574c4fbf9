// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/front.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "loop/loop.h"
#include "supervisor/workers/cgroup.h"
#include "supervisor/workers/proc_fs.h"
#include "supervisor/workers/sweep.h"

namespace muster {

namespace {

// How long a dead supervisor's processes may take to vanish after SIGKILL, and how often we look.
constexpr Milliseconds kLastResort{10'000};
constexpr int kRecheckMs = 20;

// A supervisor reads a signal within milliseconds. One that leaves a stop signal unread for so long
// hangs; if somebody asks again, we believe it sooner.
constexpr Milliseconds kPatience{30'000};
constexpr Milliseconds kImpatience{2'000};

class Front {
 public:
  explicit Front(FrontPlan plan) : plan_(std::move(plan)) {}

  [[noreturn]] void run() {
    sigset_t watched = plan_.relayed;
    sigaddset(&watched, SIGCHLD);
    signals_.reset(signalfd(-1, &watched, SFD_CLOEXEC));
    if (!signals_) _exit(1);  // the supervisor sees our end and cleans up
    for (;;) {
      if (!wait_for_signal()) {
        if (unread()) give_up_on_supervisor();
        unanswered_since_.reset();
        continue;
      }
      signalfd_siginfo info{};
      ssize_t got = read(signals_.get(), &info, sizeof info);
      if (got != static_cast<ssize_t>(sizeof info)) continue;
      if (info.ssi_signo != SIGCHLD) {
        relay(info);
      } else if (auto status = reap()) {
        end_with(*status);
      }
    }
  }

 private:
  // Sleeps for ever unless the supervisor owes us an answer. False when its time is up.
  bool wait_for_signal() const {
    pollfd ready{signals_.get(), POLLIN, 0};
    if (!unanswered_since_) return poll(&ready, 1, -1) != 0;
    const auto left = *unanswered_since_ + kPatience - Clock::now();
    const auto wait = std::chrono::ceil<Milliseconds>(left).count();
    return poll(&ready, 1, static_cast<int>(std::max<int64_t>(wait, 0))) != 0;
  }

  // Whether the supervisor has yet to read what we sent.
  bool unread() const {
    int bytes = 0;
    return ioctl(plan_.socket.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0;
  }

  void relay(const signalfd_siginfo& info) {
    const Clock::time_point now = Clock::now();
    const bool stops = info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2;
    if (!unread()) {
      unanswered_since_.reset();
    } else if (stops && unanswered_since_ && now - *unanswered_since_ > kImpatience) {
      give_up_on_supervisor();
    }
    if (stops && !unanswered_since_) unanswered_since_ = now;
    const SignalRecord record = describe_sender(static_cast<int32_t>(info.ssi_signo), info.ssi_code,
                                                static_cast<int32_t>(info.ssi_pid), info.ssi_uid);
    // Never waits: a supervisor that has hundreds of them unread knows by now.
    send(plan_.socket.get(), &record, sizeof record, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  // Reaps what can be reaped; the supervisor's wait status if it was among them.
  std::optional<int> reap() {
    std::optional<int> ended;
    int status = 0;
    for (int pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      plan_.own_children.erase(pid);
      if (pid == plan_.supervisor) ended = status;
    }
    return ended;
  }

  [[noreturn]] void end_with(int status) {
    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    const int signal = WTERMSIG(status);
    const char* name = sigabbrev_np(signal);
    end_without_supervisor("the supervisor was killed by SIG" +
                               std::string(name == nullptr ? "?" : name) + " (signal " +
                               std::to_string(signal) + ")",
                           signal);
  }

  // It hangs, in a file system that does not answer for one, and somebody wants an end.
  [[noreturn]] void give_up_on_supervisor() {
    kill(plan_.supervisor, SIGKILL);
    end_without_supervisor("the supervisor did not answer and was ended", SIGKILL);
  }

  [[noreturn]] void end_without_supervisor(const std::string& why, int signal) {
    const std::string left = end_everything();
    const std::string line =
        "muster: " + why + (left.empty() ? "; every worker was ended" : "; still there: " + left) +
        "\n";
    ::signal(SIGPIPE, SIG_IGN);
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(128 + signal);
    _exit(128 + signal);
  }

  // The supervisor's descendants are ours now, because we are the next subreaper above it. Those of
  // our own children from before are not, nor is anything of the session that we were started in:
  // workers and what they start are in sessions of their own.
  bool is_theirs(const ProcStat& found) const { return found.session != getsid(0); }

  // Says who could not be ended.
  std::string end_everything() {
    Sweep sweep;
    const auto theirs = [this](const ProcStat& found) { return is_theirs(found); };
    const auto deadline = Clock::now() + kLastResort;
    kill_cgroups_of(plan_.supervisor);
    std::string left;
    do {
      sweep.pass(SIGKILL, plan_.own_children, theirs);
      pollfd ready{signals_.get(), POLLIN, 0};
      // Other signals that wait in there make this return at once, so take them out.
      signalfd_siginfo info{};
      if (poll(&ready, 1, kRecheckMs) > 0) (void)!read(signals_.get(), &info, sizeof info);
      reap();
      left = names_of_the_living();
    } while (!left.empty() && Clock::now() < deadline);
    remove_cgroups_of(plan_.supervisor);
    return left;
  }

  std::string names_of_the_living() {
    std::string names;
    for (const ProcStat& found : descendants_of(getpid(), plan_.own_children)) {
      if (!is_theirs(found) || found.state == 'Z' || found.state == 'X') continue;
      if (!names.empty()) names += ", ";
      names += std::to_string(found.pid) + " (" + found.comm + ", state " + found.state;
      const std::string channel = read_wait_channel(found.pid);
      names += channel.empty() ? ")" : ", in " + channel + ")";
    }
    return names;
  }

  FrontPlan plan_;
  UniqueFd signals_;
  std::optional<Clock::time_point> unanswered_since_;  // the oldest stop signal not yet read
};

}  // namespace

SignalRecord describe_sender(int32_t signal, int32_t code, int32_t pid, uint32_t uid) {
  SignalRecord record{signal, code, pid, uid, {}};
  if (pid > 0) {
    auto comm = read_proc_file("/proc/" + std::to_string(pid) + "/comm");
    if (comm && !comm->empty()) {
      const size_t length = std::min(comm->size() - 1, sizeof record.command - 1);
      memcpy(record.command, comm->data(), length);
    }
  }
  return record;
}

void run_front(FrontPlan plan) {
  Front(std::move(plan)).run();
}

}  // namespace muster
