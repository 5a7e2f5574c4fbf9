// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/sweep.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "loop/unique_fd.h"

namespace muster {

namespace {

// A pass with SIGKILL looks again at most so often before it lets the loop run.
constexpr int kMaxLooks = 16;

bool is_zombie(const ProcStat& stat) {
  return stat.state == 'Z' || stat.state == 'X';
}

// 0 or an errno. A child of ours keeps its pid until we reap it, which happens on this very thread.
// Anybody else may vanish and give its pid to a stranger at any moment: a pidfd pins the process,
// and its start time tells whether it is still the one that was found.
int send_signal(const ProcStat& found, int signal) {
  if (found.ppid == getpid()) {
    if (kill(found.pid, signal) != 0) return errno;
    if (signal != SIGKILL) kill(found.pid, SIGCONT);  // a stopped process could not act on it
    return 0;
  }
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, found.pid, 0)));
  if (!pidfd) return errno;
  auto now = read_proc_stat(found.pid);
  if (!now || !now->same_process(found)) return ESRCH;
  if (syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) != 0) return errno;
  if (signal != SIGKILL) syscall(SYS_pidfd_send_signal, pidfd.get(), SIGCONT, nullptr, 0);
  return 0;
}

// A chain of processes that fork and end is faster than we can look, but a group is killed in one
// go, and a child that we have not reaped, even a zombie, keeps its group's number from being used
// again. Its members are all descendants of the worker that began their session.
void kill_group_of(const ProcStat& found) {
  if (found.ppid != getpid() || found.process_group <= 1) return;
  if (found.process_group != getpgrp()) kill(-found.process_group, SIGKILL);
}

const char* signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? "?" : name;
}

event::LeftoverFound leftover(const ProcStat& stat) {
  event::LeftoverFound found;
  found.pid = stat.pid;
  found.command = stat.comm;
  found.state = std::string(1, stat.state);
  return found;
}

std::string why_still_there(const ProcStat& stat) {
  if (kill(stat.pid, 0) != 0 && errno == EPERM)
    return "not ours to signal: it runs as another user";
  if (stat.state == 'D') return "stuck in the kernel, where SIGKILL does not reach it";
  return "did not end after SIGKILL";
}

}  // namespace

bool is_musters_own(const ProcStat& found) {
  return found.session == getsid(0);
}

bool Sweep::signal_once(const ProcStat& found, int signal) {
  Target& target = targets_[found.pid];
  if (!target.stat.same_process(found)) {
    if (target.signal != 0) replaced_.push_back(target);
    target = Target{found, Clock::now(), 0, 0};
  }
  if (target.signal == signal) return false;
  if (signal != SIGKILL && Clock::now() - target.first_seen < kOwnEnd) {
    waiting_ = true;
    return false;
  }
  const int error = send_signal(found, signal);
  if (error == ESRCH && target.signal == 0) {
    targets_.erase(found.pid);  // it ended by itself
    return false;
  }
  target.stat = found;
  target.signal = signal;
  target.error = error == ESRCH ? 0 : error;
  return error == 0;
}

std::vector<Sweep::Sent> Sweep::pass(int signal, const std::set<int>& spared,
                                     const std::function<bool(const ProcStat&)>& wanted) {
  waiting_ = false;
  std::vector<Sent> sent;
  for (int look = 0; look < kMaxLooks; ++look) {
    const size_t before = sent.size();
    for (const ProcStat& found : descendants_of(getpid(), spared)) {
      if (!wanted(found)) continue;
      if (signal == SIGKILL) kill_group_of(found);
      if (is_zombie(found)) continue;
      if (signal_once(found, signal)) sent.push_back({found.pid, signal});
    }
    if (signal != SIGKILL || sent.size() == before) break;
  }
  return sent;
}

std::vector<event::LeftoverFound> Sweep::report() const {
  std::vector<event::LeftoverFound> reported;
  std::map<int, ProcStat> living;
  for (const ProcStat& stat : descendants_of(getpid())) {
    if (!is_zombie(stat) && !is_musters_own(stat)) living.emplace(stat.pid, stat);
  }
  for (const auto& [pid, stat] : living) {
    event::LeftoverFound found = leftover(stat);
    found.wait_channel = read_wait_channel(pid);
    found.ended = false;
    found.fate = why_still_there(stat);
    reported.push_back(std::move(found));
  }
  auto add_ended = [&](const Target& target) {
    if (target.signal == 0 || target.error != 0) return;  // not our doing
    event::LeftoverFound found = leftover(target.stat);
    found.fate = std::string("ended by SIG") + signal_name(target.signal);
    reported.push_back(std::move(found));
  };
  for (const Target& target : replaced_)
    add_ended(target);
  for (const auto& [pid, target] : targets_) {
    auto still = living.find(pid);
    if (still == living.end() || !still->second.same_process(target.stat)) add_ended(target);
  }
  if (reported.size() > kMaxReported) {
    const size_t rest = reported.size() - (kMaxReported - 1);
    reported.resize(kMaxReported - 1);
    event::LeftoverFound more;
    more.command = "and " + std::to_string(rest) + " more processes";
    more.fate = "ended";
    reported.push_back(std::move(more));
  }
  return reported;
}

}  // namespace muster
