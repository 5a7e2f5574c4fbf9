// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "loop/handle.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "loop/socket_address.h"
#include "loop/unique_fd.h"

namespace muster {

// One attempt to connect to one address. Dropping it gives the attempt up.
class TcpConnector : public Handle {
 public:
  // Calls back once, from the loop, with a socket that is non-blocking, closed on exec and has
  // TCP_NODELAY and keep-alive, or with the errno of what went wrong: ECONNREFUSED (nobody listens
  // there), ETIMEDOUT (no answer, ours after `timeout` or the kernel's), EHOSTUNREACH and its like.
  static Owned<TcpConnector> connect(Loop& loop, const SocketAddress& to, Milliseconds timeout,
                                     std::function<void(Result<UniqueFd>)> on_result);
};

// Whether both ends of a connection are the same socket. That happens on loopback when nobody
// listens at a port out of which the kernel takes local ports; it is as good as refused.
bool is_own_peer(int fd);

}  // namespace muster
