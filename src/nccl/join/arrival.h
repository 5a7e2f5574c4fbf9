// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>

#include <string>

#include "nccl/core/operation.h"
#include "nccl/join/identity.h"
#include "nccl/join/place.h"
#include "store/store.h"

namespace muster::comm::detail {

struct Newcomer {
  Place place{};
  Identity identity{};
  std::string address{};  // the local end of its connection to the store, "" if there is none
};

// Whether the ranks can reach each other by loopback.
enum class Reach : uint8_t { kLoopback, kNetwork };

// Says in the store that this rank is here and waits for all others: returns when everybody is
// here, or at the deadline, naming who is not. The last to come looks at all of them and says the
// result. A rank that is there twice and world sizes that differ are everybody's error at once.
// `about` begins the messages.
Result<Reach> arrive(muster::Store& store, const Newcomer& newcomer, const std::string& about,
                     Deadline deadline);

}  // namespace muster::comm::detail
