// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/work.h>

namespace muster::comm::detail {

// What a Work waits for: an operation in flight (flight.h) or a group of them (group.h).
class WorkState {
 public:
  virtual ~WorkState() = default;
  virtual Result<void> wait() = 0;
  // kTimeout when `limit` has passed first; nothing else changes then.
  virtual Result<void> wait(Duration limit) = 0;
  virtual bool test() = 0;
};

}  // namespace muster::comm::detail
