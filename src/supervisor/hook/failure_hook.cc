// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hook/failure_hook.h"

#include <errno.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "supervisor/hook/hook_run.h"

namespace muster {

namespace {

// What the process says when it is done, before what went wrong.
constexpr std::string_view kDone = "done\n";
constexpr size_t kMaxAnswer = 4096;

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno != EINTR) return;
    if (wrote > 0) text.remove_prefix(static_cast<size_t>(wrote));
  }
}

}  // namespace

FailureHook::FailureHook(Loop& loop, std::string command, Callbacks callbacks, Milliseconds limit)
    : loop_(loop), command_(std::move(command)), callbacks_(std::move(callbacks)), limit_(limit) {}

void FailureHook::run(std::string verdict) {
  waiting_.push_back(std::move(verdict));
  if (waiting_.size() > kMaxWaiting) {
    waiting_.pop_front();
    // We may be told from inside of what records it.
    loop_.post([this, guard = std::weak_ptr<bool>(alive_)] {
      if (guard.expired()) return;
      callbacks_.on_trouble("a verdict was left out: " + std::to_string(kMaxWaiting) +
                            " newer ones wait for it");
    });
  }
  if (!running_) start_next();
}

void FailureHook::start_next() {
  const std::string verdict = std::move(waiting_.front());
  waiting_.pop_front();
  answer_.clear();
  running_ = true;
  auto child = OwnChild::start("muster-hook", [&](int out) {
    const std::string wrong = run_hook(command_, verdict, limit_);
    write_all(out, std::string(kDone) + wrong);
  });
  if (!child) {
    answer_ = std::string(kDone) + "not run: " + child.error().message;
  } else {
    child_.emplace(std::move(*child));
    auto watch =
        FdWatch::start(loop_, child_->output(), FdWatch::kReadable, [this](int) { on_output(); });
    if (watch) {
      watch_ = std::move(*watch);
      patience_ = Timer::start(loop_, limit_ + kMoreTime, [this] { finished(); });
      return;
    }
    answer_ = std::string(kDone) + watch.error().message;
  }
  // As everything else that is told: from the loop.
  loop_.post([this, guard = std::weak_ptr<bool>(alive_)] {
    if (!guard.expired()) finished();
  });
}

void FailureHook::on_output() {
  char buffer[1024];
  const ssize_t got = ::read(child_->output(), buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0 && answer_.size() < kMaxAnswer) {
    answer_.append(buffer, static_cast<size_t>(got));
    return;
  }
  finished();
}

void FailureHook::finished() {
  patience_.reset();
  watch_.reset();
  child_.reset();
  running_ = false;
  std::string wrong = "it did not end";
  if (answer_.starts_with(kDone)) wrong = answer_.substr(kDone.size());
  const std::weak_ptr<bool> guard = alive_;
  if (!waiting_.empty()) start_next();
  const bool idle = !busy();
  auto on_trouble = callbacks_.on_trouble;
  auto on_idle = callbacks_.on_idle;
  if (!wrong.empty()) on_trouble(wrong);
  if (idle && !guard.expired()) on_idle();
}

}  // namespace muster
