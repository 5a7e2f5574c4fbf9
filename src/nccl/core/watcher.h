// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <thread>

namespace muster::comm::detail {

class CommunicatorImpl;

// The thread of this process that looks at all operations begun with CommBackend::start(), so that
// their end is stamped, their deadline kept and an asynchronous error noticed though nobody waits
// for them. There is one, as long as a communicator has begun such an operation and still is there.
class Watcher {
 public:
  static std::shared_ptr<Watcher> shared();
  Watcher();
  ~Watcher();

  // The communicator has something to look at; again is no matter.
  void watch(const std::shared_ptr<CommunicatorImpl>& communicator);
  // Look now: something was stopped.
  void wake();

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace muster::comm::detail
