// SPDX-License-Identifier: Apache-2.0
#include "nccl/gloo/loop_turns.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

namespace muster::comm::detail {

// Its value is never read, so that it is always ready.
LoopTurns::LoopTurns() : fd_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

LoopTurns::~LoopTurns() {
  close(fd_);
}

void LoopTurns::begin(gloo::transport::tcp::Device& device) {
  device.registerDescriptor(fd_, EPOLLIN, this);
}

void LoopTurns::wait(int turns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const uint32_t goal = turns_.load() + static_cast<uint32_t>(turns);
  // A turn takes a microsecond.
  while (static_cast<int32_t>(goal - turns_.load()) > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

void LoopTurns::handleEvents(int /*events*/) {
  turns_.fetch_add(1);
}

}  // namespace muster::comm::detail
