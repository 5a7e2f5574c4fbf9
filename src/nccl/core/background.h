// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <thread>

#include "nccl/core/flight.h"

namespace muster::comm::detail {

// One communicator's thread for asynchronous work on host memory, in the order of the calls. It
// begins with the first such call and is joined by join(), or left to itself where a backend does
// not come back: it owns what it needs.
class Background {
 public:
  Background();
  ~Background();

  // Nothing queued and nothing running. True stays true until the next push().
  bool idle() const;
  // Waits while the queue is full; false: still full at the deadline, or stopped.
  bool push(std::shared_ptr<Flight> flight);
  // Called by CommunicatorImpl::perform() when the backend has come back, before the flight ends:
  // whoever waited for it finds the thread idle.
  void done();
  // What is queued still goes through perform(), which refuses it; then the thread ends.
  void stop();
  // False: the thread was still in the backend at the deadline.
  bool join(Deadline deadline);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace muster::comm::detail
