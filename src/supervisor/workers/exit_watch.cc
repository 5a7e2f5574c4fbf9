// SPDX-License-Identifier: Apache-2.0
#include "supervisor/workers/exit_watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>

#include "loop/check.h"

namespace muster {

namespace {

constexpr size_t kBatch = 64;

// False while a debugger still holds the dead process.
bool wait_for(int pid, ExitWatch::Death& death) {
  rusage usage{};
  int waited;
  do {
    waited = wait4(pid, &death.wait_status, WNOHANG, &usage);
  } while (waited < 0 && errno == EINTR);
  MUST(waited >= 0);
  death.pid = pid;
  death.max_rss_kib = usage.ru_maxrss;
  return waited == pid;
}

}  // namespace

ExitWatch::ExitWatch(Loop& loop, std::function<void()> on_deaths)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  MUST(epoll_);
  auto watch = FdWatch::start(loop, epoll_.get(), FdWatch::kReadable,
                              [on_deaths = std::move(on_deaths)](int) { on_deaths(); });
  MUST(watch.has_value());
  watch_ = std::move(*watch);
}

void ExitWatch::add(int pid, UniqueFd pidfd) {
  epoll_event event{};
  // Once, so that epoll never puts one back behind the others, nor tells of a traced one again.
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.fd = pid;
  MUST(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) == 0);
  pidfds_.emplace(pid, std::move(pidfd));
}

std::vector<ExitWatch::Death> ExitWatch::reap() {
  std::array<epoll_event, kBatch> events;
  for (int count; (count = epoll_wait(epoll_.get(), events.data(), kBatch, 0)) > 0;) {
    for (int i = 0; i < count; ++i)
      dead_.push_back(events[static_cast<size_t>(i)].data.fd);
  }
  std::vector<Death> deaths;
  std::erase_if(dead_, [&](int pid) {
    Death death;
    if (!wait_for(pid, death)) return false;
    pidfds_.erase(pid);
    deaths.push_back(death);
    return true;
  });
  return deaths;
}

}  // namespace muster
