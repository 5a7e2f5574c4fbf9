// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "loop/handle.h"
#include "loop/loop.h"
#include "loop/result.h"
#include "loop/socket_address.h"
#include "loop/unique_fd.h"

namespace muster {

// A listening TCP socket in the loop. What it accepts is non-blocking and has TCP_NODELAY and
// keep-alive. When descriptors run out it says so once and leaves new connections in the kernel's
// queue until there is room, without spinning.
class TcpListener : public Handle {
 public:
  struct Callbacks {
    std::function<void(UniqueFd socket, const SocketAddress& peer)> on_connection;
    std::function<void(const std::string& message)> on_trouble;
  };

  // `address` is a literal; "::" listens for IPv4 too. Port 0 takes a free one. The backlog is the
  // system's maximum.
  static Result<Owned<TcpListener>> listen(Loop& loop, const std::string& address, int port,
                                           Callbacks callbacks);

  virtual int port() const = 0;

  // Draws a line behind the connections that wait in the kernel's queue now. They stay there.
  virtual void mark() = 0;
  // In on_connection: whether this one came before the last mark().
  virtual bool before_mark() const = 0;
};

// The longest queue of connections not yet accepted that the kernel grants
// (net.core.somaxconn).
int max_listen_backlog();

}  // namespace muster
