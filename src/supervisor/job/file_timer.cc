// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/file_timer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>
#include <nlohmann/json.hpp>

namespace muster {

namespace {

constexpr int kRequestVersion = 1;
// Clients write at most PIPE_BUF bytes at once, so a longer line is not a request.
constexpr size_t kMaxLine = PIPE_BUF;
// A process that holds more timers than this is broken; its further ones are not taken.
constexpr size_t kMaxTimers = 10'000;

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::optional<TimerRequest> parse_timer_request(std::string_view line) {
  auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  auto integer = [&](const char* name) -> std::optional<int> {
    auto found = json.find(name);
    if (found == json.end() || !found->is_number_integer()) return std::nullopt;
    auto value = found->get<int64_t>();
    if (value < INT_MIN || value > INT_MAX) return std::nullopt;
    return static_cast<int>(value);
  };
  auto pid = integer("pid");
  auto signal = integer("signal");
  auto scope = json.find("scope_id");
  auto expiration = json.find("expiration_time");
  if (integer("version") != kRequestVersion || !pid || !signal || scope == json.end() ||
      !scope->is_string() || expiration == json.end() || !expiration->is_number()) {
    return std::nullopt;
  }
  return TimerRequest{*pid, scope->get<std::string>(), expiration->get<double>(), *signal};
}

void TimerTable::apply(const TimerRequest& request) {
  std::pair<int, std::string> key{request.pid, request.scope_id};
  if (request.expiration_time < 0) {
    timers_.erase(key);
  } else if (timers_.size() < kMaxTimers || timers_.contains(key)) {
    timers_[std::move(key)] = request;
  }
}

std::optional<double> TimerTable::next_expiration() const {
  std::optional<double> next;
  for (const auto& [key, timer] : timers_) {
    next = std::min(next.value_or(timer.expiration_time), timer.expiration_time);
  }
  return next;
}

std::vector<TimerRequest> TimerTable::take_expired(double now) {
  std::vector<TimerRequest> expired;
  for (auto it = timers_.begin(); it != timers_.end();) {
    if (it->second.expiration_time > now) {
      ++it;
      continue;
    }
    bool seen = !expired.empty() && expired.back().pid == it->second.pid;
    if (!seen && it->second.signal > 0) expired.push_back(it->second);
    it = timers_.erase(it);
  }
  return expired;
}

Result<std::unique_ptr<FileTimer>> FileTimer::open(
    Loop& loop, std::string path, std::function<void(const TimerRequest&)> on_expired) {
  ::unlink(path.c_str());
  if (::mkfifo(path.c_str(), 0600) != 0) return errno_error(errno, "watchdog: mkfifo " + path);
  // Read and write, so that the pipe never ends while clients come and go.
  UniqueFd fifo(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fifo) return errno_error(errno, "watchdog: open " + path);
  int fd = fifo.get();
  std::unique_ptr<FileTimer> timer(
      new FileTimer(loop, std::move(path), std::move(fifo), std::move(on_expired)));
  auto watch = FdWatch::start(loop, fd, FdWatch::kReadable,
                              [self = timer.get()](int) { self->on_readable(); });
  if (!watch) return watch.error();
  timer->watch_ = std::move(*watch);
  return timer;
}

FileTimer::FileTimer(Loop& loop, std::string path, UniqueFd fifo,
                     std::function<void(const TimerRequest&)> on_expired)
    : loop_(loop),
      path_(std::move(path)),
      fifo_(std::move(fifo)),
      on_expired_(std::move(on_expired)) {}

FileTimer::~FileTimer() {
  ::unlink(path_.c_str());
}

void FileTimer::on_readable() {
  char buffer[4 * kMaxLine];
  ssize_t got = ::read(fifo_.get(), buffer, sizeof(buffer));
  if (got <= 0) return;
  pending_.append(buffer, static_cast<size_t>(got));
  size_t start = 0;
  for (size_t end; (end = pending_.find('\n', start)) != std::string::npos; start = end + 1) {
    auto request = parse_timer_request(std::string_view(pending_).substr(start, end - start));
    if (request) table_.apply(*request);
  }
  pending_.erase(0, start);
  if (pending_.size() > kMaxLine) pending_.clear();
  rearm();
}

void FileTimer::rearm() {
  auto next = table_.next_expiration();
  if (!next) {
    timer_.reset();
    return;
  }
  double wait = std::clamp(*next - unix_now(), 0.0, 86'400.0);
  timer_ = Timer::start(loop_, Milliseconds(static_cast<int64_t>(wait * 1000) + 1),
                        [this] { on_time(); });
}

void FileTimer::on_time() {
  std::vector<TimerRequest> expired = table_.take_expired(unix_now());
  rearm();
  for (const TimerRequest& request : expired)
    on_expired_(request);
}

}  // namespace muster
