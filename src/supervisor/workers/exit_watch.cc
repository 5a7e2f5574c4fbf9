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
  // Edge-triggered, so that epoll never puts one back behind the others.
  event.events = EPOLLIN | EPOLLET;
  event.data.fd = pid;
  MUST(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) == 0);
  pidfds_.emplace(pid, std::move(pidfd));
}

std::vector<ExitWatch::Death> ExitWatch::reap() {
  std::vector<Death> deaths;
  std::array<epoll_event, kBatch> events;
  for (;;) {
    int count = epoll_wait(epoll_.get(), events.data(), kBatch, 0);
    if (count <= 0) break;
    for (int i = 0; i < count; ++i) {
      Death death;
      death.pid = events[static_cast<size_t>(i)].data.fd;
      rusage usage{};
      int waited;
      do {
        waited = wait4(death.pid, &death.wait_status, WNOHANG, &usage);
      } while (waited < 0 && errno == EINTR);
      MUST(waited == death.pid);  // a readable pidfd is a process that can be waited for
      death.max_rss_kib = usage.ru_maxrss;
      pidfds_.erase(death.pid);
      deaths.push_back(death);
    }
  }
  return deaths;
}

}  // namespace muster
