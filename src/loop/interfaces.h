// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "loop/socket_address.h"

namespace muster {

// The addresses of this machine's interfaces that are up, loopback included, with port 0. Asks the
// kernel each time, since interfaces come and go; waits for nobody.
std::vector<SocketAddress> local_addresses();

// Whether `address` is one of `ours`, or loopback, or unspecified: whether a connection to it ends
// on this machine.
bool is_local(const SocketAddress& address, const std::vector<SocketAddress>& ours);

}  // namespace muster
