// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/stdin_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "supervisor/logs/terminal.h"

namespace muster {

namespace {

constexpr size_t kMaxWaiting = 64 * 1024;
constexpr char kEndOfInput = '\x04';  // what a fresh pseudo-terminal takes for end of file
constexpr Milliseconds kBackgroundRetry{1'000};

}  // namespace

std::unique_ptr<StdinRelay> StdinRelay::start(Loop& loop, int terminal, int master) {
  std::unique_ptr<StdinRelay> relay(new StdinRelay(loop));
  StdinRelay* self = relay.get();
  std::string path = "/proc/self/fd/" + std::to_string(terminal);
  relay->terminal_.reset(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  relay->master_.reset(fcntl(master, F_DUPFD_CLOEXEC, 3));
  if (!relay->terminal_ || !relay->master_) return nullptr;
  auto readable = FdWatch::start(loop, relay->terminal_.get(), FdWatch::kReadable,
                                 [self](int) { self->read_some(); });
  auto writable =
      FdWatch::start(loop, relay->master_.get(), 0, [self](int) { self->write_some(); });
  if (!readable || !writable) return nullptr;
  relay->readable_ = std::move(*readable);
  relay->writable_ = std::move(*writable);
  return relay;
}

void StdinRelay::read_some() {
  if (in_background(terminal_.get())) {
    // It is the shell's input now. When we are back in the foreground, what comes is ours again.
    readable_->set_interest(0);
    retry_ = Timer::start(loop_, kBackgroundRetry, [this] {
      readable_->set_interest(FdWatch::kReadable);
      retry_.reset();
    });
    return;
  }
  char bytes[4096];
  ssize_t n = read(terminal_.get(), bytes, sizeof bytes);
  if (n > 0) {
    waiting_.append(bytes, static_cast<size_t>(n));
  } else if (n == 0) {
    waiting_ += kEndOfInput;
  } else if (errno != EAGAIN && errno != EINTR) {
    readable_.reset();  // hung up
  }
  write_some();
}

void StdinRelay::write_some() {
  while (!waiting_.empty()) {
    ssize_t n = write(master_.get(), waiting_.data(), waiting_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {  // the worker is gone
      readable_.reset();
      writable_.reset();
      return;
    }
    waiting_.erase(0, static_cast<size_t>(n));
  }
  writable_->set_interest(waiting_.empty() ? 0 : FdWatch::kWritable);
  bool full = waiting_.size() >= kMaxWaiting;
  if (readable_ && !retry_) readable_->set_interest(full ? 0 : FdWatch::kReadable);
}

}  // namespace muster
