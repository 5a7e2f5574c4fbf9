// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <cstdint>

namespace muster::comm::detail {

// Makes the loop of a Gloo device turn without rest, and counts the turns. For its end only: each
// connection that is closed waits for a turn, which else comes every 10 ms. The device must be gone
// before this is.
class LoopTurns final : public gloo::transport::tcp::Handler {
 public:
  LoopTurns();  // throws std::system_error if there is no descriptor left
  ~LoopTurns() override;
  LoopTurns(const LoopTurns&) = delete;
  LoopTurns& operator=(const LoopTurns&) = delete;

  void begin(gloo::transport::tcp::Device& device);
  // Returns when it has been called `turns` times more, a second later at most.
  void wait(int turns);

  void handleEvents(int events) override;

 private:
  int fd_;
  std::atomic<uint32_t> turns_ = 0;
};

}  // namespace muster::comm::detail
