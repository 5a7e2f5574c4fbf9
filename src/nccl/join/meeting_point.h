// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>
#include <muster/comm/work.h>

#include <memory>
#include <string>

#include "nccl/core/operation.h"
#include "nccl/join/identity.h"
#include "nccl/join/place.h"
#include "store/store.h"

namespace muster::comm::detail {

// A world's way to its store, and out again. Owned by World::Impl, which shares it among threads:
// open_store() may be called by any, the rest by one at a time.
class MeetingPoint {
 public:
  virtual ~MeetingPoint() = default;

  // The whole store, without a prefix.
  virtual muster::Store& store() = 0;
  // A connection of its own; `timeout` for connecting and afterwards.
  virtual Result<std::shared_ptr<muster::Store>> open_store(Duration timeout) = 0;

  // This end of the connection to the store, a literal; "" where there is no connection.
  virtual std::string address() const = 0;

  // What leaving asks for: see World::leave(). `keys` is the prefix of this attempt's keys.
  virtual Result<void> leave(const std::string& keys, Deadline deadline) = 0;
};

// Goes there; rank 0 makes it if nobody else does.
Result<std::unique_ptr<MeetingPoint>> meet_at_store(const Venue& venue, const Place& place,
                                                    Deadline deadline);
Result<std::unique_ptr<MeetingPoint>> meet_at_file(const Venue& venue, const Place& place,
                                                   const Identity& identity, Deadline deadline);

}  // namespace muster::comm::detail
