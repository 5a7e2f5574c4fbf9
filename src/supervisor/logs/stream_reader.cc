// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/stream_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>

namespace muster {

namespace {

// What is still taken from a pipe that somebody keeps open after the worker's end: more than a pipe
// holds, and a bound for a writer that never stops.
constexpr size_t kLastCall = 2 * 1024 * 1024;

int64_t unix_time_us() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

Result<std::unique_ptr<StreamReader>> StreamReader::start(Loop& loop, ChunkPool& chunks,
                                                          std::shared_ptr<PoolGate> gate,
                                                          UniqueFd fd,
                                                          std::shared_ptr<LogFile> file,
                                                          Hooks hooks) {
  std::unique_ptr<StreamReader> reader(new StreamReader(chunks, std::move(fd), std::move(hooks)));
  StreamReader* self = reader.get();
  if (file) {
    reader->file_ =
        std::make_unique<FileQueue>(std::move(gate), std::move(file),
                                    [self](std::vector<Chunk> chunks, LogFile::Written written) {
                                      self->on_written(std::move(chunks), written);
                                    });
  }
  auto watch = FdWatch::start(loop, reader->fd_.get(), FdWatch::kReadable,
                              [self](int) { self->read_some(); });
  if (!watch) return watch.error();
  reader->watch_ = std::move(*watch);
  return reader;
}

void StreamReader::resume() {
  deliver();
  go_on();
}

void StreamReader::wait_for_more() {
  if (at_end_) return;
  bool wanted = in_flight_ < kInFlight && (last_call_ || hooks_.may_go_on());
  watch_->set_interest(wanted ? FdWatch::kReadable : 0);
}

void StreamReader::end_soon() {
  if (at_end_ || last_call_) return;
  last_call_ = true;
  last_call_left_ = kLastCall;
  if (in_flight_ < kInFlight) read_some();
}

void StreamReader::read_some() {
  Chunk chunk = chunks_.take();
  ssize_t n = read(fd_.get(), chunk.data.get(), Chunk::kCapacity);
  int error = errno;
  if (n > 0) {
    chunk.size = static_cast<size_t>(n);
    chunk.arrived_us = unix_time_us();
    on_chunk(std::move(chunk));
    return;
  }
  chunks_.give_back(std::move(chunk));
  bool nothing_yet = n < 0 && (error == EAGAIN || error == EINTR);
  // Any other error is an end too; EIO is how a pseudo-terminal says that its last user is gone.
  if (!nothing_yet || last_call_) at_end();
}

void StreamReader::on_chunk(Chunk chunk) {
  ++in_flight_;
  hooks_.on_read(chunk.size);
  if (last_call_) last_call_left_ -= std::min(last_call_left_, chunk.size);
  if (!seen_output_) {
    seen_output_ = true;
    hooks_.on_first_output();
  }
  if (file_) {
    file_->append(std::move(chunk));
    wait_for_more();
    return;
  }
  undelivered_.push_back(std::move(chunk));
  deliver();
  go_on();
}

void StreamReader::on_written(std::vector<Chunk> chunks, const LogFile::Written& written) {
  if (written.error != 0) hooks_.on_file_error(written);
  std::move(chunks.begin(), chunks.end(), std::back_inserter(undelivered_));
  deliver();
  go_on();
}

// Also while draining a pause is honoured: it is bounded, and the end comes after it.
void StreamReader::deliver() {
  while (!undelivered_.empty() && hooks_.may_deliver()) {
    Chunk chunk = std::move(undelivered_.front());
    undelivered_.pop_front();
    --in_flight_;
    hooks_.on_bytes(chunk.bytes());
    chunks_.give_back(std::move(chunk));
  }
}

void StreamReader::go_on() {
  if (at_end_) {
    if (in_flight_ == 0) at_end();
  } else if (!last_call_) {
    wait_for_more();
  } else if (last_call_left_ == 0) {
    at_end();
  } else if (in_flight_ < kInFlight) {
    read_some();
  }
}

void StreamReader::at_end() {
  at_end_ = true;
  watch_.reset();
  fd_.reset();
  if (in_flight_ > 0 || finishing_) return;  // the last chunk comes back here
  finishing_ = true;
  auto end = [this] {
    ended_ = true;
    hooks_.on_end();
  };
  if (file_) {
    file_->finish(end);
  } else {
    end();
  }
}

}  // namespace muster
