// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "nccl/core/operation.h"

namespace muster::comm::detail {

// Calls a function in a thread of its own if it still lives at the deadline. When the destructor
// has returned, it is not called any more.
class Alarm {
 public:
  Alarm(Deadline deadline, std::function<void()> ring)
      : thread_([this, deadline, ring = std::move(ring)] {
          std::unique_lock lock(mutex_);
          // No clock can count to the end of time, so a far deadline is a day.
          const auto until =
              std::min(deadline, std::chrono::steady_clock::now() + std::chrono::hours(24));
          if (!dismissed_.wait_until(lock, until, [this] { return over_; })) ring();
        }) {}
  ~Alarm() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    dismissed_.notify_one();
    thread_.join();
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable dismissed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace muster::comm::detail
