// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "loop/socket_address.h"

namespace muster {

// The addresses of this machine's interfaces that are up, loopback included, with port 0. Asks the
// kernel each time, since interfaces come and go; waits for nobody.
std::vector<SocketAddress> local_addresses();

// Where other machines may reach this one, to be told to them: the addresses that its default
// routes use first, then the rest but for link-local ones. Loopback only where there is nothing
// else.
std::vector<SocketAddress> reachable_addresses();

// Whether `address` is one of `ours`, or loopback, or unspecified: whether a connection to it ends
// on this machine.
bool is_local(const SocketAddress& address, const std::vector<SocketAddress>& ours);

}  // namespace muster
