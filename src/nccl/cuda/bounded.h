// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "nccl/core/operation.h"

namespace muster::comm::detail {

// Ends waits from any thread, for ever. Shared by a communicator and by whoever waits for it.
class StopSignal {
 public:
  bool stopped() const { return stopped_; }
  void stop();
  // Waits at most `time`; true: stopped.
  bool wait_for(std::chrono::microseconds time);

 private:
  friend class BoundedCall;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopped_ = false;
};

// The pauses between two questions to a library that has no way to wait for an answer: each twice
// as long as the one before, up to 1 ms.
class Pause {
 public:
  void wait(StopSignal& stop) {
    stop.wait_for(next_);
    next_ = std::min(next_ * 2, std::chrono::microseconds(1000));
  }

 private:
  std::chrono::microseconds next_{5};
};

enum class Ended { kDone, kStopped, kLate };

// Does `call` on a thread of its own and waits for it until the deadline or the stop; without a
// signal, until the deadline.
//
// For calls into NCCL and the driver, which can take for ever (a peer that is gone, a driver that
// hangs) and can be ended by nobody. When kDone is not the answer the thread is left alone with the
// call: it must own all that it touches, and tidy up after itself should it ever come back. There
// is no way to join it.
Ended run_bounded(const std::shared_ptr<StopSignal>& signal, Deadline deadline,
                  std::function<void()> call);

}  // namespace muster::comm::detail
