// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/background.h"

#include <deque>

#include "nccl/core/communicator_impl.h"

namespace muster::comm::detail {
namespace {

// Operations that wait for their turn; who begins more waits for a place.
constexpr size_t kMaxQueued = 1024;

}  // namespace

struct Background::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Flight>> queue;
  bool stopping = false;
  bool ended = false;
  std::atomic<int> outstanding{0};
};

Background::Background() : state_(std::make_shared<State>()) {}

Background::~Background() {
  stop();
  if (!thread_.joinable()) return;
  // The last owner of the communicator may be the thread itself.
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

bool Background::idle() const {
  return state_->outstanding.load() == 0;
}

bool Background::push(std::shared_ptr<Flight> flight) {
  std::unique_lock lock(state_->mutex);
  const bool room = state_->changed.wait_until(lock, flight->limit().deadline, [this] {
    return state_->queue.size() < kMaxQueued || state_->stopping;
  });
  if (!room || state_->stopping) return false;
  state_->outstanding.fetch_add(1);
  state_->queue.push_back(std::move(flight));
  if (!thread_.joinable()) thread_ = std::thread([state = state_] { run(state); });
  state_->changed.notify_all();
  return true;
}

void Background::done() {
  state_->outstanding.fetch_sub(1);
}

void Background::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
}

bool Background::join(Deadline deadline) {
  if (!thread_.joinable()) return true;
  {
    std::unique_lock lock(state_->mutex);
    if (!state_->changed.wait_until(lock, deadline, [this] { return state_->ended; })) {
      // A backend's call that never returns must not hold the caller for ever as well.
      thread_.detach();
      return false;
    }
  }
  thread_.join();
  return true;
}

void Background::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return !state->queue.empty() || state->stopping; });
    if (state->queue.empty()) break;
    std::shared_ptr<Flight> flight = std::move(state->queue.front());
    state->queue.pop_front();
    state->changed.notify_all();
    lock.unlock();
    // An owner stays until its flights have ended; one that has ended is no longer of interest.
    if (const std::shared_ptr<CommunicatorImpl> owner = flight->owner())
      owner->perform(*flight);
    else
      state->outstanding.fetch_sub(1);
    flight.reset();
    lock.lock();
  }
  state->ended = true;
  state->changed.notify_all();
}

}  // namespace muster::comm::detail
