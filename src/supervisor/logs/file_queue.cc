// SPDX-License-Identifier: Apache-2.0
#include "supervisor/logs/file_queue.h"

#include <utility>

#include "loop/pool.h"

namespace muster {

Chunk ChunkPool::take() {
  if (free_.empty()) return Chunk();
  Chunk chunk = std::move(free_.back());
  free_.pop_back();
  chunk.size = 0;
  return chunk;
}

void ChunkPool::give_back(Chunk chunk) {
  if (free_.size() < kKept) free_.push_back(std::move(chunk));
}

void PoolGate::run(std::function<void()> work, std::function<void()> done) {
  Job job{std::move(work), std::move(done)};
  if (running_ < kAtOnce) {
    start(std::move(job));
  } else {
    waiting_.push_back(std::move(job));
  }
}

void PoolGate::start(Job job) {
  ++running_;
  auto self = shared_from_this();
  run_in_pool(loop_, std::move(job.work), [self, done = std::move(job.done)] {
    --self->running_;
    if (!self->waiting_.empty()) {
      Job next = std::move(self->waiting_.front());
      self->waiting_.pop_front();
      self->start(std::move(next));
    }
    done();
  });
}

// What the pool's thread works on: nothing of the queue itself, which the loop may drop meanwhile.
struct FileQueue::Write {
  std::shared_ptr<LogFile> file;
  std::vector<Chunk> chunks;
  LogFile::Written written;

  void run() {
    for (const Chunk& chunk : chunks) {
      LogFile::Written each = file->append(chunk.bytes(), chunk.arrived_us);
      written.lost += each.lost;
      if (each.error != 0) written.error = each.error;
    }
  }
};

FileQueue::FileQueue(std::shared_ptr<PoolGate> gate, std::shared_ptr<LogFile> file,
                     OnWritten on_written)
    : gate_(std::move(gate)),
      file_(std::move(file)),
      on_written_(std::move(on_written)),
      self_(std::make_shared<FileQueue*>(this)) {}

void FileQueue::append(Chunk chunk) {
  waiting_.push_back(std::move(chunk));
  next();
}

void FileQueue::finish(std::function<void()> on_finished) {
  on_finished_ = std::move(on_finished);
  next();
}

void FileQueue::next() {
  if (writing_ || (waiting_.empty() && !on_finished_)) return;
  // Nothing of ours is in the pool now, so the file may be asked. A silent worker's end costs no
  // thread anything.
  if (waiting_.empty() && file_->finished()) return std::exchange(on_finished_, nullptr)();
  writing_ = true;
  std::weak_ptr<FileQueue*> weak = self_;
  if (waiting_.empty()) {
    gate_->run([file = file_] { file->finish(); },
               [weak, on_finished = std::exchange(on_finished_, nullptr)] {
                 auto self = weak.lock();
                 if (!self) return;
                 (*self)->writing_ = false;
                 on_finished();
               });
    return;
  }
  auto write = std::make_shared<Write>();
  write->file = file_;
  write->chunks.swap(waiting_);
  gate_->run([write] { write->run(); },
             [weak, write] {
               auto self = weak.lock();
               if (!self) return;
               (*self)->writing_ = false;
               (*self)->next();
               (*self)->on_written_(std::move(write->chunks), write->written);
             });
}

}  // namespace muster
