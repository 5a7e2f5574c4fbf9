// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <muster/comm/error.h>

#include <string>

#include "nccl/join/place.h"

namespace muster::comm::detail {

// The address of the interface that MUSTER_SOCKET_IFNAME or else GLOO_SOCKET_IFNAME names (the
// first of a list that has one); "" where neither is set. The error lists what there is.
Result<std::string> chosen_address(const Variables& variables);

// One by which other hosts may reach this one, IPv4 first; loopback where there is no other.
std::string outside_address();

}  // namespace muster::comm::detail
