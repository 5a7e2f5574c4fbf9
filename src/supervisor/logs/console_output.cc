// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/console_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "loop/pool.h"

namespace muster {

namespace {

constexpr size_t kPauseMark = 1024 * 1024;  // readers pause while more than this waits

// For one write to a regular file: when the system writes a full cache back it takes seconds.
constexpr Milliseconds kFilePatience{5'000};

// A pipe has this at most. It gains a fifth of the time, and a millisecond with every 50 KiB that
// are taken: one that is read at 50 MB/s or more never skips.
constexpr Milliseconds kPipePatience{500};
constexpr int kPipeShare = 5;
constexpr size_t kPipePace = 50 * 1024;
constexpr Milliseconds kLeastPause{10};
constexpr int kPipeSize = 1024 * 1024;
constexpr int kPoolPollMs = 200;     // a write in the pool waits no longer for readiness
constexpr size_t kPoolPiece = 4096;  // what a ready pipe takes without blocking

// In the pool. Returns how much was written; `error` is EAGAIN if the other end does not read.
size_t write_blocking(int fd, bool regular, const char* data, size_t size, int& error) {
  size_t done = 0;
  while (done < size) {
    size_t piece = size - done;
    if (!regular) {
      // Not to be stuck for ever in somebody else's full socket: muster has to end some day.
      struct pollfd ready = {fd, POLLOUT, 0};
      if (poll(&ready, 1, kPoolPollMs) == 0) {
        error = EAGAIN;
        return done;
      }
      piece = std::min(piece, kPoolPiece);
    }
    ssize_t n = write(fd, data + done, piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error = n < 0 ? errno : EIO;
      return done;
    }
    done += static_cast<size_t>(n);
  }
  return done;
}

}  // namespace

void ByteBuffer::reserve(size_t more) {
  if (size + more <= capacity) return;
  size_t grown = std::max({size + more, capacity * 2, size_t{4096}});
  std::unique_ptr<char[]> bigger(new char[grown]);
  if (size > 0) std::memcpy(bigger.get(), data.get(), size);
  data = std::move(bigger);
  capacity = grown;
}

struct ConsoleOutput::Write {
  ByteBuffer buffer;
  size_t done = 0;
  int error = 0;
};

ConsoleOutput::ConsoleOutput(Loop& loop, int fd, Hooks hooks)
    : loop_(loop),
      fd_(fd),
      hooks_(std::move(hooks)),
      write_(std::make_shared<Write>()),
      patience_(kPipePatience),
      patience_since_(Clock::now()),
      self_(std::make_shared<ConsoleOutput*>(this)) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    closed_ = true;  // muster was started without it
    return;
  }
  terminal_ = isatty(fd) == 1;
  // /dev/null and its like never make anybody wait.
  regular_ = S_ISREG(info.st_mode) || (S_ISCHR(info.st_mode) && !terminal_);
  if (!S_ISFIFO(info.st_mode) && !terminal_) return;
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  UniqueFd own(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!own) return;
  if (!terminal_) fcntl(own.get(), F_SETPIPE_SZ, kPipeSize);
  auto watch = FdWatch::start(loop, own.get(), 0, [this](int) { write_when_ready(); });
  if (!watch) return;
  watch_ = std::move(*watch);
  reopened_ = std::move(own);
}

int ConsoleOutput::columns() const {
  struct winsize size = {};
  return ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void ConsoleOutput::flush() {
  if (closed_) {
    next_.size = 0;
  } else if (!writing_ && next_.size > 0) {
    start_write();
  }
}

void ConsoleOutput::start_write() {
  std::swap(write_->buffer, next_);
  next_.size = 0;
  write_->done = 0;
  write_->error = 0;
  writing_ = true;
  if (reopened_) {
    write_when_ready();
  } else {
    write_in_pool();
  }
}

void ConsoleOutput::write_in_pool() {
  std::weak_ptr<ConsoleOutput*> weak = self_;
  run_in_pool(
      loop_,
      [write = write_, fd = fd_, regular = regular_] {
        write->error = 0;
        write->done += write_blocking(fd, regular, write->buffer.data.get() + write->done,
                                      write->buffer.size - write->done, write->error);
      },
      [weak, write = write_, before = write_->done] {
        auto alive = weak.lock();
        if (!alive) return;
        ConsoleOutput* self = *alive;
        self->bytes_written_ += write->done - before;
        if (write->error == EAGAIN) {
          self->write_in_pool();
        } else if (write->error != 0) {
          self->on_write_error(write->error);
        } else {
          self->made_progress();
        }
      });
}

void ConsoleOutput::write_when_ready() {
  ByteBuffer& buffer = write_->buffer;
  while (write_->done < buffer.size) {
    ssize_t n =
        write(reopened_.get(), buffer.data.get() + write_->done, buffer.size - write_->done);
    if (n > 0) {
      write_->done += static_cast<size_t>(n);
      bytes_written_ += static_cast<size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      watch_->set_interest(FdWatch::kWritable);
      return;
    }
    on_write_error(n < 0 ? errno : EIO);
    return;
  }
  watch_->set_interest(0);
  made_progress();
}

void ConsoleOutput::on_write_error(int error) {
  // The other end is gone (`| head`, a closed terminal): nobody wants this copy any more.
  closed_ = error == EPIPE || error == EBADF || (error == EIO && !regular_);
  if (closed_) {
    watch_.reset();
    next_.size = 0;
  } else {
    const char* all = write_->buffer.data.get();
    hooks_.on_lost(std::count(all + write_->done, all + write_->buffer.size, '\n'));
  }
  made_progress();
}

void ConsoleOutput::made_progress() {
  end_pause();
  if (regular_) {
    patience_ = kFilePatience;
  } else {
    auto earned = Milliseconds(write_->buffer.size / kPipePace);
    patience_ = std::min(kPipePatience, patience_ + earned);
  }
  writing_ = false;
  write_->buffer.size = 0;
  if (next_.size > 0 && !closed_) start_write();
  hooks_.on_room();
}

bool ConsoleOutput::wants_pause() {
  if (next_.size <= kPauseMark || closed_ || terminal_) return false;
  if (pausing_) return true;
  if (!regular_) {
    Clock::time_point now = Clock::now();
    auto gained = std::chrono::duration_cast<Milliseconds>(now - patience_since_) / kPipeShare;
    patience_ = std::min(kPipePatience, patience_ + gained);
    patience_since_ = now;
  }
  if (patience_ < kLeastPause) return false;
  pausing_ = true;
  patience_since_ = Clock::now();
  pause_end_ = Timer::start(loop_, patience_, [this] {
    end_pause();
    hooks_.on_room();
  });
  return true;
}

void ConsoleOutput::end_pause() {
  if (!pausing_) return;
  pausing_ = false;
  pause_end_.reset();
  Clock::time_point now = Clock::now();
  patience_ -= std::chrono::duration_cast<Milliseconds>(now - patience_since_);
  patience_since_ = now;
}

}  // namespace muster
