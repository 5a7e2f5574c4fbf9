// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "loop/fd_watch.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "supervisor/workers/own_child.h"

namespace muster {

// The command of --on-failure: gets each verdict on its standard input, one after the other, in a
// process of its own, so that nothing waits for it but the end of muster. Owned by the supervisor's
// main, on whose node the coordinator is.
class FailureHook {
 public:
  struct Callbacks {
    // It failed, and how. From the loop.
    std::function<void(const std::string& trouble)> on_trouble;
    // Nothing runs or waits any more. From the loop; may drop this.
    std::function<void()> on_idle;
  };

  static constexpr Milliseconds kLimit{30'000};    // for one verdict
  static constexpr Milliseconds kMoreTime{2'000};  // until one that cannot be killed is left alone
  // Verdicts that wait for the one before; of more the oldest are left out.
  static constexpr size_t kMaxWaiting = 8;

  FailureHook(Loop& loop, std::string command, Callbacks callbacks, Milliseconds limit = kLimit);
  FailureHook(const FailureHook&) = delete;
  FailureHook& operator=(const FailureHook&) = delete;

  void run(std::string verdict);

  bool busy() const { return running_ || !waiting_.empty(); }

 private:
  void start_next();
  void on_output();
  void finished();

  Loop& loop_;
  const std::string command_;
  Callbacks callbacks_;
  const Milliseconds limit_;
  std::deque<std::string> waiting_;
  bool running_ = false;
  std::string answer_;
  std::optional<OwnChild> child_;
  Owned<Timer> patience_;
  Owned<FdWatch> watch_;  // goes before the child with the descriptor
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // guards posted tasks
};

}  // namespace muster
