// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

struct uv_loop_s;

namespace muster {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

struct LookupQueue;

// The one event loop of a process: built first, dies last. Its destructor turns the loop until
// every closing handle is gone; if a live handle remains it prints the handles and aborts, because
// an owner was forgotten.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop() or until nothing referenced is left.
  void run();

  // Makes run() return after the current turn. May be called from any callback.
  void stop();

  // Turns the loop until `done()` or the deadline. Returns what done() says last. For tests and for
  // bounded shutdown.
  bool run_until(const std::function<bool()>& done, Milliseconds deadline);

  // Calls `task` once, on the next turn, after the callbacks of this one.
  void post(std::function<void()> task);

  // Whether work for the pool, or a request to the kernel, has not come back yet.
  bool has_requests() const;

  // For the other files of src/loop/ alone.
  uv_loop_s* raw() const { return loop_.get(); }
  std::shared_ptr<LookupQueue>& lookups() { return lookups_; }

 private:
  struct Posted;
  std::unique_ptr<uv_loop_s> loop_;
  std::unique_ptr<Posted> posted_;
  std::shared_ptr<LookupQueue> lookups_;
};

}  // namespace muster
