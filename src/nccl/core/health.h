// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>

#include <atomic>
#include <mutex>
#include <string>

namespace muster::comm::detail {

// Whether a communicator may still be used, and if not, why. It goes one way, from open to not, and
// the first reason stays. Any thread.
class Health {
 public:
  bool open() const { return open_.load(); }

  // Whether this was the first reason. `why` is what later errors carry: its code, and its message
  // after "...of communicator world: ".
  bool end(Error why) {
    const std::lock_guard lock(mutex_);
    if (!open_.load()) return false;
    why_ = std::move(why);
    open_.store(false);
    return true;
  }

  Error why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  std::atomic<bool> open_{true};
  mutable std::mutex mutex_;
  Error why_;
};

}  // namespace muster::comm::detail
