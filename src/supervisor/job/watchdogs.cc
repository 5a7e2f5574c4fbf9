// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/watchdogs.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "supervisor/workers/proc_fs.h"

namespace muster {

namespace {

std::string variable(const Environment& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return "";
}

std::string random_timer_path(const Environment& environment) {
  uint64_t bits[2] = {};
  ssize_t got = ::getrandom(bits, sizeof(bits), 0);
  (void)got;  // never short for 16 bytes
  char name[64];
  std::snprintf(name, sizeof(name), "/watchdog_timer_%016lx%016lx", bits[0], bits[1]);
  std::string folder = variable(environment, "TMPDIR");
  return (folder.empty() ? "/tmp" : folder) + name;
}

}  // namespace

WatchdogSettings watchdog_settings(const Environment& environment) {
  WatchdogSettings settings;
  settings.file_timer = variable(environment, "TORCHELASTIC_ENABLE_FILE_TIMER") == "1";
  if (settings.file_timer) {
    settings.timer_path = variable(environment, "TORCHELASTIC_TIMER_FILE");
    if (settings.timer_path.empty()) settings.timer_path = random_timer_path(environment);
  }
  std::string stuck = variable(environment, "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT");
  char* end = nullptr;
  double seconds = std::strtod(stuck.c_str(), &end);
  bool whole = !stuck.empty() && *end == '\0';
  // As in torchrun, what is not a positive number turns the check off. A day is "for ever" here.
  if (whole && seconds > 0) {
    settings.stuck_after = Milliseconds(static_cast<int64_t>(std::min(seconds, 86'400.0) * 1000));
  }
  return settings;
}

Watchdogs::Watchdogs(Loop& loop, const WatchdogSettings& settings, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), stuck_after_(settings.stuck_after) {
  if (settings.file_timer) {
    auto timer = FileTimer::open(loop, settings.timer_path,
                                 [this](const TimerRequest& request) { on_expired(request); });
    if (timer) {
      file_timer_ = std::move(*timer);
    } else {
      callbacks_.on_trouble(timer.error().message);
    }
  }
  if (stuck_after_.count() > 0) {
    Milliseconds period = std::clamp(stuck_after_ / 4, Milliseconds(50), Milliseconds(1'000));
    look_timer_ = Timer::repeat(loop, period, [this] { look(); });
    look_timer_->unref();
  }
}

void Watchdogs::worker_started(int local_rank, int pid) {
  workers_[local_rank] = Watched{pid, {}};
}

void Watchdogs::worker_ended(int local_rank) {
  workers_.erase(local_rank);
}

void Watchdogs::on_expired(const TimerRequest& request) {
  // Anybody who can write to the pipe can name a process; only the workers' own are touched. Each
  // worker leads a session, so its members are known by it.
  pid_t session = request.pid > 0 ? ::getsid(request.pid) : -1;
  for (const auto& [local_rank, watched] : workers_) {
    if (watched.pid == session) return callbacks_.on_expired(local_rank, request);
  }
}

void Watchdogs::look() {
  Clock::time_point now = Clock::now();
  std::vector<std::pair<int, Watched>> stuck;
  for (auto& [local_rank, watched] : workers_) {
    auto stat = read_proc_stat(watched.pid);
    if (!stat || stat->state != 'D') {
      watched.stuck_since = {};
    } else if (watched.stuck_since == Clock::time_point{}) {
      watched.stuck_since = now;
    } else if (now - watched.stuck_since >= stuck_after_) {
      stuck.emplace_back(local_rank, watched);
    }
  }
  for (const auto& [local_rank, watched] : stuck) {
    workers_.erase(local_rank);  // said once
    callbacks_.on_stuck(local_rank, watched.pid,
                        std::chrono::duration_cast<Milliseconds>(now - watched.stuck_since));
  }
}

}  // namespace muster
