// SPDX-License-Identifier: Apache-2.0
#include "nccl/core/watcher.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "nccl/core/communicator_impl.h"

namespace muster::comm::detail {
namespace {

// Between two looks. Short while operations begin and end, so that a ring's times are good; what
// lasts is looked at seldom.
constexpr std::chrono::microseconds kShortest{200};
constexpr std::chrono::microseconds kLongest{5000};

}  // namespace

struct Watcher::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::weak_ptr<CommunicatorImpl>> watched;
  bool fresh = false;
  bool stopping = false;

  // Who still has something in flight, after a look at each.
  void look(std::vector<std::weak_ptr<CommunicatorImpl>>& list) {
    std::erase_if(list, [](const std::weak_ptr<CommunicatorImpl>& each) {
      const std::shared_ptr<CommunicatorImpl> communicator = each.lock();
      return communicator == nullptr || !communicator->poll_flights();
    });
  }
};

std::shared_ptr<Watcher> Watcher::shared() {
  static std::mutex mutex;
  static std::weak_ptr<Watcher> current;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Watcher> watcher = current.lock();
  if (watcher == nullptr) current = watcher = std::make_shared<Watcher>();
  return watcher;
}

Watcher::Watcher() : state_(std::make_shared<State>()) {
  thread_ = std::thread([state = state_] { run(state); });
}

Watcher::~Watcher() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  // The watcher's thread may have been the last to hold a communicator, and so the watcher.
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

void Watcher::watch(const std::shared_ptr<CommunicatorImpl>& communicator) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->watched.push_back(communicator);
    state_->fresh = true;
  }
  state_->changed.notify_all();
}

void Watcher::wake() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->fresh = true;
  }
  state_->changed.notify_all();
}

void Watcher::run(const std::shared_ptr<State>& state) {
  std::vector<std::weak_ptr<CommunicatorImpl>> list;  // looked at without the lock
  std::chrono::microseconds pause = kShortest;
  std::unique_lock lock(state->mutex);
  while (!state->stopping) {
    list.insert(list.end(), state->watched.begin(), state->watched.end());
    state->watched.clear();
    state->fresh = false;
    lock.unlock();
    state->look(list);
    lock.lock();
    const auto news = [&] { return state->fresh || state->stopping; };
    if (list.empty()) {
      state->changed.wait(lock, news);
      pause = kShortest;
    } else if (state->changed.wait_for(lock, pause, news)) {
      pause = kShortest;
    } else {
      pause = std::min(pause * 2, kLongest);
    }
  }
}

}  // namespace muster::comm::detail
