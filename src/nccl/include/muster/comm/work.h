// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>

#include <chrono>
#include <memory>
#include <optional>

namespace muster::comm {

// Times to wait; any std::chrono duration of whole milliseconds converts to it.
using Duration = std::chrono::milliseconds;

// How one operation is to be done.
struct OpOptions {
  // From the call on; nullopt: the communicator's. When it has passed, the operation fails with
  // kTimeout and the communicator is of no further use (see Communicator).
  std::optional<Duration> timeout{};
  // Host memory: return at once and work in the background, in the order of the calls. Device
  // memory is never waited for by the call itself.
  bool async = false;
};

namespace detail {
class WorkState;
}

// An operation that was begun. Cheap to move; one that is done owns nothing. Dropping it does not
// stop the operation, and the memory must stay until the operation is done or its communicator
// closed. A Work may be waited for and tested from any thread, one at a time.
class [[nodiscard]] Work {
 public:
  Work() = default;  // one that is done
  Work(Error error) : error_(std::make_unique<Error>(std::move(error))) {}
  explicit Work(std::shared_ptr<detail::WorkState> state) : state_(std::move(state)) {}

  // Waits for the end, at most for what is left of the operation's time. Device memory: the host
  // waits until the device has done it; to go on without waiting, rely on the stream instead.
  Result<void> wait();

  // Waits at most `timeout`: kTimeout then, the operation goes on and can be waited for again.
  Result<void> wait(Duration timeout);

  // Whether it has ended, well or not: wait() then answers at once.
  bool test();

 private:
  std::unique_ptr<Error> error_;              // it has failed already
  std::shared_ptr<detail::WorkState> state_;  // it may still go on
};

}  // namespace muster::comm
