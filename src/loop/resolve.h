// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/handle.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "loop/socket_address.h"

namespace muster {

// A look-up under way. Dropping it silences it; the name server may go on thinking.
class Lookup : public Handle {};

// Asks for the addresses of `host`, a name or a literal ("10.0.0.1", "::1", "fe80::1%eth0").
// Literals ask nobody; names go to the pool, one at a time for the whole loop, because a dead name
// server holds a thread for half a minute and others need the pool too. Who asks for a name that is
// being looked up shares its answer.
//
// Calls back once, from the loop, with at least one address, each of them once, port 0, in the
// order in which to try them, IPv6 only if this machine can use it; or with an Error that names the
// host and the step ("resolve node-a: name not known").
Owned<Lookup> resolve(Loop& loop, const std::string& host,
                      std::function<void(Result<std::vector<SocketAddress>>)> on_result);

}  // namespace muster
