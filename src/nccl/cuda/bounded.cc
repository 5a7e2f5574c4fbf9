// SPDX-License-Identifier: Apache-2.0
#include "nccl/cuda/bounded.h"

#include <system_error>
#include <thread>

namespace muster::comm::detail {

void StopSignal::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool StopSignal::wait_for(std::chrono::microseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return stopped_.load(); });
}

class BoundedCall {
 public:
  BoundedCall(std::shared_ptr<StopSignal> signal, std::function<void()> call)
      : signal_(std::move(signal)), call_(std::move(call)) {}

  void run() {
    call_();
    call_ = nullptr;  // what it owns goes before the waiter goes on
    const std::lock_guard lock(signal_->mutex_);
    done_ = true;
    signal_->changed_.notify_all();
  }

  Ended wait(Deadline deadline) {
    std::unique_lock lock(signal_->mutex_);
    signal_->changed_.wait_until(lock, deadline, [this] { return done_ || signal_->stopped_; });
    if (done_) return Ended::kDone;
    return signal_->stopped_ ? Ended::kStopped : Ended::kLate;
  }

 private:
  const std::shared_ptr<StopSignal> signal_;
  std::function<void()> call_;
  bool done_ = false;
};

Ended run_bounded(const std::shared_ptr<StopSignal>& signal, Deadline deadline,
                  std::function<void()> call) {
  const auto bounded = std::make_shared<BoundedCall>(
      signal != nullptr ? signal : std::make_shared<StopSignal>(), std::move(call));
  std::thread thread;
  try {
    thread = std::thread([bounded] { bounded->run(); });
  } catch (const std::system_error&) {
    // No threads left: better without a bound than not at all.
    bounded->run();
    return Ended::kDone;
  }
  const Ended ended = bounded->wait(deadline);
  if (ended == Ended::kDone) {
    thread.join();
  } else {
    thread.detach();
  }
  return ended;
}

}  // namespace muster::comm::detail
